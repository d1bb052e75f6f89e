// weights/: safetensors and GGUF files, quantisation, model manifests and their download.
// Files in; checked, named tensors out, by ranged reads.
// Never builds a graph, never trusts a header beyond the bytes that are there.

export { type PulledFile, type PullOptions, pullModel } from './download/pull.js';
export { openGguf } from './gguf/reader.js';
export { bfloat16BytesToFloat, floatToBfloat16, floatToHalf, halfBytesToFloat, halfToFloat } from './half.js';
export {
  type EmbedderConventions,
  embedderSchema,
  type FileRole,
  findManifest,
  type ManifestFile,
  type ModelManifest,
  manifestIds,
  manifestSchema,
  manifestsFolder,
  modelIdSchema,
  readManifest,
  sha256Schema,
} from './manifest.js';
export { isGguf, openWeights } from './open.js';
export { openSafetensorsFile } from './safetensors/reader.js';
export { openShardedSafetensors } from './safetensors/sharded.js';
export type * from './tensor-source.js';
