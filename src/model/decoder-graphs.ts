// Builds a decoder's graphs and their weights into a folder, or finds them there again.

import type { OnProgress } from '../util/progress.js';
import { ADAPTER_GROUPS, type AdapterGroup, type GroupShape, groupShape } from './adapter-groups.js';
import type { DecoderConfig } from './decoder-config.js';
import { decoderGraph } from './decoder-graph.js';
import type { DecoderWeights } from './decoder-weights.js';
import { END_BITS, type GraphPrecision, LAYER_BITS, writeDecoderWeights } from './decoder-weights-file.js';
import { type BuiltGraphs, graphsInFolder } from './graph-folder.js';
import { quantisedValues } from './quantised-values.js';
import type { StoredTensor, WeightsFile } from './weights-file.js';

const FLOAT32_CACHE = ['step', 'step-adapters'] as const;
const INT8_CACHE = ['step-int8', 'step-adapters-int8'] as const;
const BOTH_CACHES = [...FLOAT32_CACHE, ...INT8_CACHE] as const;

/** The step graph with and without adapter inputs, see `decoderGraph`. */
export interface StepFiles {
  readonly stepFile: string;
  readonly adapterStepFile: string;
}

/** Graphs and the file of their weights. */
export interface WeightedSteps extends StepFiles {
  readonly weightsFile: string;
  readonly weightsByteLength: number;
  /** Where tensors lie in the weights file, for sessions that share what onnxruntime makes of them. */
  readonly weightsTensors: Readonly<Record<string, StoredTensor>>;
}

/** Graphs for steps of many tokens or rows. */
export interface WideSteps extends WeightedSteps {
  /** The same steps over an int8 cache. */
  readonly int8Cache: StepFiles;
}

/** What an engine needs to know of built graphs. */
export interface EngineGraphs extends WeightedSteps {
  readonly precision: GraphPrecision;
  /** sha256 over graphs and weights. */
  readonly digest: string;
  readonly config: DecoderConfig;
  /** The same steps over an int8 cache; null for `fp32`. */
  readonly int8Cache: StepFiles | null;
  /** The same values with the layers in float32, for wide steps; null where they were not asked for. */
  readonly wideSteps: WideSteps | null;
  /** Positions that the rotary tables hold: no sequence can be longer. */
  readonly maxPositions: number;
  readonly groups: Readonly<Record<AdapterGroup, GroupShape>>;
}

export interface BuildDecoderOptions {
  readonly weights: DecoderWeights;
  readonly precision: GraphPrecision;
  /** Folder that the files go to. */
  readonly folder: string;
  /** Digest of the files that the weights come from; graphs built from others are built again. */
  readonly sourceDigest: string;
  /**
   * Also build the layers in float32, of the values that the blocks stand for: four times the size, and faster for many
   * tokens or rows at once on processors without instructions for products of bytes. Default false; nothing for `fp32`.
   */
  readonly wideSteps?: boolean;
  readonly onProgress?: OnProgress;
}

/** Builds the step graphs of a decoder in one precision, or returns those that an earlier call left in the folder. */
export async function buildDecoderGraphs(options: BuildDecoderOptions): Promise<EngineGraphs> {
  const { weights, precision, folder, sourceDigest } = options;
  const { config } = weights;
  const built = await graphsInFolder({
    folder,
    set: precision,
    source: { config, precision, sourceDigest },
    names: precision === 'fp32' ? FLOAT32_CACHE : BOTH_CACHES,
    writeWeights: (path) =>
      writeDecoderWeights(weights, bitsOf(precision), path, progressOf(options, precision)),
    buildGraph: (name, file) => stepGraph(config, name, file),
  });
  const shapes = ADAPTER_GROUPS.map((group) => [group, groupShape(config, group)]);
  return {
    precision,
    digest: built.digest,
    config,
    ...weightedSteps(built),
    int8Cache: precision === 'fp32' ? null : int8Steps(built),
    wideSteps: options.wideSteps && precision !== 'fp32' ? await buildWideSteps(options) : null,
    maxPositions: config.maxPositions,
    groups: Object.fromEntries(shapes) as Record<AdapterGroup, GroupShape>,
  };
}

const bitsOf = (precision: GraphPrecision) => ({ layers: LAYER_BITS[precision], ends: END_BITS[precision] });

const progressOf =
  ({ onProgress }: BuildDecoderOptions, set: string) =>
  (done: number, total: number) =>
    onProgress?.({ stage: `weights ${set}`, done, total, unit: 'layers' });

const weightedSteps = (built: BuiltGraphs<(typeof FLOAT32_CACHE)[number]>): WeightedSteps => ({
  stepFile: built.files.step,
  adapterStepFile: built.files['step-adapters'],
  weightsFile: built.weightsFile,
  weightsByteLength: built.weightsByteLength,
  weightsTensors: built.weightsTensors,
});

const int8Steps = (built: BuiltGraphs<(typeof INT8_CACHE)[number]>): StepFiles => ({
  stepFile: built.files['step-int8'],
  adapterStepFile: built.files['step-adapters-int8'],
});

const stepGraph = (config: DecoderConfig, name: (typeof BOTH_CACHES)[number], file: WeightsFile) =>
  decoderGraph(config, file, {
    adapters: name.startsWith('step-adapters'),
    cache: name.endsWith('-int8') ? 'int8' : 'float32',
  });

/** Embedding and head stay in blocks: few rows reach them, and they are the largest matrices. */
async function buildWideSteps(options: BuildDecoderOptions): Promise<WideSteps> {
  const { weights, precision, folder, sourceDigest } = options;
  const { config } = weights;
  const set = `${precision}-wide`;
  const { layer } = quantisedValues(weights, precision);
  const built = await graphsInFolder({
    folder,
    set,
    source: { config, precision, sourceDigest },
    names: BOTH_CACHES,
    writeWeights: (path) =>
      writeDecoderWeights(
        { ...weights, layer },
        { ...bitsOf(precision), layers: 32 },
        path,
        progressOf(options, set),
      ),
    buildGraph: (name, file) => stepGraph(config, name, file),
  });
  return { ...weightedSteps(built), int8Cache: int8Steps(built) };
}
