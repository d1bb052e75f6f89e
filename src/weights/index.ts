// weights/: safetensors and GGUF files, quantisation, model manifests and their download.
// Files in; checked, named tensors out, by ranged reads.
// Never builds a graph, never trusts a header beyond the bytes that are there.

export { type Claim, type ClaimOptions, claim } from './download/claim.js';
export { fetchText } from './download/http-file.js';
export { type PulledFile, type PullOptions, pullModel } from './download/pull.js';
export {
  locateHttpFile,
  locateHubFile,
  type PullFileOptions,
  pullFile,
  type RemoteFile,
} from './download/pull-file.js';
export {
  type HubReference,
  type PulledRepository,
  parseHubReference,
  pullRepository,
} from './download/pull-repository.js';
export type { GgufEntry, GgufValue } from './gguf/metadata.js';
export { type GgufSource, openGguf } from './gguf/reader.js';
export { type GgufTensor, writeGguf } from './gguf/writer.js';
export { bfloat16BytesToFloat, floatToBfloat16, floatToHalf, halfBytesToFloat, halfToFloat } from './half.js';
export {
  type EmbedderConventions,
  embedderSchema,
  type FileRole,
  fileRoleSchema,
  findManifest,
  type ManifestFile,
  type ModelManifest,
  manifestIds,
  manifestSchema,
  manifestsFolder,
  modelIdSchema,
  readManifest,
  type ShippedAdapter,
  sha256Schema,
  shippedAdapter,
} from './manifest.js';
export { type ModelFile, selectModelFiles } from './model-files.js';
export { isGguf, openWeights } from './open.js';
export type { PlainType, WrittenTensor } from './plain-values.js';
export { quantise8, toQ8Bytes } from './quantised/eight-bit.js';
export { quantise4 } from './quantised/four-bit.js';
export { BLOCK_SIZE, dequantiseMatrix, type QuantisedMatrix } from './quantised/matrix.js';
export { openSafetensorsFile } from './safetensors/reader.js';
export { openShardedSafetensors, readShardIndex } from './safetensors/sharded.js';
export { writeSafetensors } from './safetensors/writer.js';
export type * from './tensor-source.js';
