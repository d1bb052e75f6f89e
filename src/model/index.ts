// model/: what models are (decoders, encoders, adapters) and the graphs that compute them.
// Weights of any supported source in; checked graphs with their weights files out.
// Never runs a graph, never schedules a sequence.

export { type Adapter, LARGEST_ADAPTER_WEIGHT, modulePath, readAdapter } from './adapter.js';
export { type AdapterConfig, rankAndScale, readAdapterConfig } from './adapter-config.js';
export {
  type AdapterLayout,
  adapterLayout,
  joinLayouts,
  type LayoutData,
  layOutAdapters,
} from './adapter-layout.js';
export { cacheSteps } from './cache-steps.js';
export type { DecoderArchitecture, DecoderConfig } from './decoder-config.js';
export type { EngineGraphs, StepFiles } from './decoder-graphs.js';
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
export { describeDecoder } from './describe-decoder.js';
export { describeEncoder } from './describe-encoder.js';
export { buildEncoderGraph, type EncoderGraph } from './encoder-graphs.js';
export { encoderWeights } from './encoder-weights.js';
export { quantisedLinear, quantisedValues } from './quantised-values.js';
export { type RopeTables, ropeFrequencies, ropeTables } from './rope.js';
export {
  ensureModel,
  type GivenConventions,
  importManifest,
  importModel,
  listModels,
  type ModelRecord,
  openModel,
  preparePrecision,
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
