export type { GivenConventions } from './conventions.js';
export { ensureModel, type ImportOptions, importManifest, importModel } from './import.js';
export { listModels, openModel, type StoredModel, verifyModel } from './open.js';
export { removeModel } from './place.js';
export { type PrepareOptions, preparePrecision } from './prepare.js';
export type { ModelRecord, RecordFile } from './record.js';
