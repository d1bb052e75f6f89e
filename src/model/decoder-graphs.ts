// Builds a decoder's graphs and their weights into a folder, or finds them there again.

import type { OnProgress } from '../util/progress.js';
import { ADAPTER_GROUPS, type AdapterGroup, type GroupShape, groupShape } from './adapter-groups.js';
import type { DecoderConfig } from './decoder-config.js';
import { decoderGraph } from './decoder-graph.js';
import type { DecoderWeights } from './decoder-weights.js';
import { type GraphPrecision, writeDecoderWeights } from './decoder-weights-file.js';
import { graphsInFolder } from './graph-folder.js';
import type { StoredTensor } from './weights-file.js';

const FLOAT32_CACHE = ['step', 'step-adapters'] as const;
const INT8_CACHE = ['step-int8', 'step-adapters-int8'] as const;

/** The step graph with and without adapter inputs, see `decoderGraph`. */
export interface StepFiles {
  readonly stepFile: string;
  readonly adapterStepFile: string;
}

/** What an engine needs to know of built graphs. */
export interface EngineGraphs extends StepFiles {
  readonly precision: GraphPrecision;
  /** sha256 over graphs and weights. */
  readonly digest: string;
  readonly config: DecoderConfig;
  /** The same steps over an int8 cache; null for `fp32`. */
  readonly int8Cache: StepFiles | null;
  readonly weightsFile: string;
  readonly weightsByteLength: number;
  /** Where tensors lie in the weights file, for sessions that share what onnxruntime makes of them. */
  readonly weightsTensors: Readonly<Record<string, StoredTensor>>;
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
  readonly onProgress?: OnProgress;
}

/** Builds the step graphs of a decoder in one precision, or returns those that an earlier call left in the folder. */
export async function buildDecoderGraphs(options: BuildDecoderOptions): Promise<EngineGraphs> {
  const { weights, precision, folder, sourceDigest, onProgress } = options;
  const { config } = weights;
  const built = await graphsInFolder({
    folder,
    set: precision,
    source: { config, precision, sourceDigest },
    names: precision === 'fp32' ? FLOAT32_CACHE : [...FLOAT32_CACHE, ...INT8_CACHE],
    writeWeights: (path) => writeDecoderWeights(weights, precision, path, onProgress),
    buildGraph: (name, file) =>
      decoderGraph(config, file, {
        adapters: name.startsWith('step-adapters'),
        cache: name.endsWith('-int8') ? 'int8' : 'float32',
      }),
  });
  const shapes = ADAPTER_GROUPS.map((group) => [group, groupShape(config, group)]);
  const int8Cache = {
    stepFile: built.files['step-int8'],
    adapterStepFile: built.files['step-adapters-int8'],
  };
  return {
    precision,
    digest: built.digest,
    config,
    stepFile: built.files.step,
    adapterStepFile: built.files['step-adapters'],
    int8Cache: precision === 'fp32' ? null : int8Cache,
    weightsFile: built.weightsFile,
    weightsByteLength: built.weightsByteLength,
    weightsTensors: built.weightsTensors,
    maxPositions: config.maxPositions,
    groups: Object.fromEntries(shapes) as Record<AdapterGroup, GroupShape>,
  };
}
