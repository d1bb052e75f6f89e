// Builds a decoder's graphs and their weights into a folder, or finds them there again.

import type { OnProgress } from '../util/progress.js';
import { ADAPTER_GROUPS, type AdapterGroup, type GroupShape, groupShape } from './adapter-groups.js';
import type { DecoderConfig } from './decoder-config.js';
import { decoderGraph } from './decoder-graph.js';
import type { DecoderWeights } from './decoder-weights.js';
import { type GraphPrecision, writeDecoderWeights } from './decoder-weights-file.js';
import { graphsInFolder } from './graph-folder.js';

/** What an engine needs to know of built graphs. */
export interface EngineGraphs {
  readonly precision: GraphPrecision;
  /** sha256 over graphs and weights. */
  readonly digest: string;
  readonly config: DecoderConfig;
  /** The step graph, see `decoderGraph`. */
  readonly stepFile: string;
  /** The step graph with adapter inputs. */
  readonly adapterStepFile: string;
  readonly weightsFile: string;
  readonly weightsByteLength: number;
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
    names: ['step', 'step-adapters'],
    writeWeights: (path) => writeDecoderWeights(weights, precision, path, onProgress),
    buildGraph: (name, file) => decoderGraph(config, file, { adapters: name === 'step-adapters' }),
  });
  const shapes = ADAPTER_GROUPS.map((group) => [group, groupShape(config, group)]);
  return {
    precision,
    digest: built.digest,
    config,
    stepFile: built.files.step,
    adapterStepFile: built.files['step-adapters'],
    weightsFile: built.weightsFile,
    weightsByteLength: built.weightsByteLength,
    maxPositions: config.maxPositions,
    groups: Object.fromEntries(shapes) as Record<AdapterGroup, GroupShape>,
  };
}
