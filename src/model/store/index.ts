export type { GivenConventions } from './conventions.js';
export { ensureModel, importManifest, importModel } from './import.js';
export { listModels, openModel, type StoredModel, verifyModel } from './open.js';
export { removeModel } from './place.js';
export { preparePrecision } from './prepare.js';
export type { ModelRecord } from './record.js';
