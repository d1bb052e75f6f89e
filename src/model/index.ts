// model/: what models are (decoders, encoders, adapters) and the graphs that compute them.
// Weights of any supported source in; checked graphs with their weights files out.
// Never runs a graph, never schedules a sequence.

export {
  type Adapter,
  type AdapterModule,
  LARGEST_ADAPTER_WEIGHT,
  modulePath,
  type ReadAdapterOptions,
  readAdapter,
} from './adapter.js';
export { type AdapterConfig, rankAndScale, readAdapterConfig } from './adapter-config.js';
export {
  ADAPTER_GROUPS,
  type AdapterGroup,
  GROUP_MODULES,
  type GroupShape,
  groupShape,
} from './adapter-groups.js';
export {
  type AdapterLayout,
  adapterLayout,
  joinLayouts,
  type LayoutData,
  layOutAdapters,
} from './adapter-layout.js';
export { type CacheSample, cacheSteps } from './cache-steps.js';
export type { DecoderArchitecture, DecoderConfig, RopeScaling } from './decoder-config.js';
export {
  type BuildDecoderOptions,
  buildDecoderGraphs,
  type EngineGraphs,
  type StepFiles,
} from './decoder-graphs.js';
export {
  type DecoderWeights,
  decoderWeights,
  hubLayerTensor,
  hubModelTensor,
  type LayerPart,
  LINEAR_MODULES,
  type LinearModule,
  linearShape,
  type ModelPart,
} from './decoder-weights.js';
export type { GraphPrecision } from './decoder-weights-file.js';
export { type DecoderSource, describeDecoder } from './describe-decoder.js';
export { describeEncoder } from './describe-encoder.js';
export type { EncoderConfig, Pooling } from './encoder-config.js';
export { type BuildEncoderOptions, buildEncoderGraph, type EncoderGraph } from './encoder-graphs.js';
export { type EncoderWeights, encoderWeights } from './encoder-weights.js';
export { quantisedLinear, quantisedValues } from './quantised-values.js';
export { type RopeTables, ropeFrequencies, ropeTables } from './rope.js';
export {
  ensureModel,
  type GivenConventions,
  type ImportOptions,
  importManifest,
  importModel,
  listModels,
  type ModelRecord,
  openModel,
  type PrepareOptions,
  preparePrecision,
  type RecordFile,
  removeModel,
  type StoredModel,
  verifyModel,
} from './store/index.js';
export type { Trained } from './training-layers.js';
export {
  afterAttention,
  attentionBlock,
  type BaseForm,
  beforeAttention,
  type LayerStageOptions,
  mergedWeight,
  policyHead,
  policyHeadWithDirection,
  valueHead,
} from './training-stages.js';
