// weights/: safetensors and GGUF files, quantisation, model manifests and their download.
// Files in; checked, named tensors out, by ranged reads.
// Never builds a graph, never trusts a header beyond the bytes that are there.

export { type Claim, claim } from './download/claim.js';
export { fetchText } from './download/http-file.js';
export { type PullOptions, pullModel } from './download/pull.js';
export { locateHttpFile, locateHubFile, pullFile, type RemoteFile } from './download/pull-file.js';
export { parseHubReference, pullRepository } from './download/pull-repository.js';
export type { GgufEntry } from './gguf/metadata.js';
export { openGguf } from './gguf/reader.js';
export { type GgufTensor, writeGguf } from './gguf/writer.js';
export {
  type EmbedderConventions,
  embedderSchema,
  type FileRole,
  fileRoleSchema,
  findManifest,
  type ModelManifest,
  manifestIds,
  modelIdSchema,
  sha256Schema,
  shippedAdapter,
} from './manifest.js';
export { selectModelFiles } from './model-files.js';
export { isGguf, openWeights } from './open.js';
export type { PlainType, WrittenTensor } from './plain-values.js';
export { quantise8 } from './quantised/eight-bit.js';
export { quantise4 } from './quantised/four-bit.js';
export { BLOCK_SIZE, dequantiseMatrix, type QuantisedMatrix } from './quantised/matrix.js';
export { openSafetensorsFile } from './safetensors/reader.js';
export { writeSafetensors } from './safetensors/writer.js';
export type { TensorInfo, TensorSource } from './tensor-source.js';
