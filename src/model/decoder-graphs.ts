// Builds a decoder's graphs and their weights into a folder, and finds them there again.

import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { toOnnx } from '../graph/index.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { canonicalJson, sha256Hex } from '../util/digest.js';
import type { OnProgress } from '../util/progress.js';
import {
  ADAPTER_GROUPS,
  type AdapterGroup,
  GROUP_MODULES,
  type GroupShape,
  groupShape,
} from './adapter-groups.js';
import type { DecoderConfig } from './decoder-config.js';
import { decoderGraph } from './decoder-graph.js';
import type { DecoderWeights } from './decoder-weights.js';
import { type GraphPrecision, writeDecoderWeights } from './decoder-weights-file.js';
import type { WeightsFile } from './weights-file.js';

/** What an engine needs to know of built graphs. */
export interface EngineGraphs {
  readonly precision: GraphPrecision;
  /** sha256 over graphs and weights. */
  readonly digest: string;
  readonly config: DecoderConfig;
  /** The step graph, see {@link decoderGraph}. */
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

/** Changes when graphs or weights would come out differently from the same source. */
const FORMAT = 1;

interface Manifest {
  readonly key: string;
  readonly digest: string;
  readonly weights: WeightsFile;
  readonly graphs: Readonly<Record<'step' | 'adapterStep', string>>;
}

/**
 * Builds the step graphs of a decoder, or returns those that an earlier call left in the folder.
 * A manifest is written last: a build that was killed leaves nothing that is taken for whole.
 */
export async function buildDecoderGraphs(options: BuildDecoderOptions): Promise<EngineGraphs> {
  const { weights, precision, folder } = options;
  const { config } = weights;
  const key = sha256Hex(canonicalJson({ format: FORMAT, config, precision, source: options.sourceDigest }));
  const found = await readManifest(folder, precision, key);
  if (found !== null) return describe(found, options);

  const path = join(folder, `weights-${precision}.bin`);
  const file = await writeDecoderWeights(weights, precision, path, options.onProgress);
  const graphs = { step: `step-${precision}.onnx`, adapterStep: `step-${precision}-adapters.onnx` };
  const onnx = {
    step: toOnnx(decoderGraph(config, file, { adapters: false })),
    adapterStep: toOnnx(decoderGraph(config, file, { adapters: true })),
  };
  await writeFileAtomic(join(folder, graphs.step), onnx.step);
  await writeFileAtomic(join(folder, graphs.adapterStep), onnx.adapterStep);
  const digest = sha256Hex([file.sha256, sha256Hex(onnx.step), sha256Hex(onnx.adapterStep)].join());
  const manifest: Manifest = { key, digest, weights: file, graphs };
  await writeFileAtomic(manifestPath(folder, precision), `${JSON.stringify(manifest, null, 1)}\n`);
  return describe(manifest, options);
}

function manifestPath(folder: string, precision: GraphPrecision): string {
  return join(folder, `graphs-${precision}.json`);
}

/** The manifest in the folder, if it is of this key and its files are there in full length. */
async function readManifest(
  folder: string,
  precision: GraphPrecision,
  key: string,
): Promise<Manifest | null> {
  try {
    const manifest = JSON.parse(await readFile(manifestPath(folder, precision), 'utf8')) as Manifest;
    if (manifest.key !== key) return null;
    const weights = await stat(join(folder, manifest.weights.file));
    if (weights.size !== manifest.weights.byteLength) return null;
    for (const graph of Object.values(manifest.graphs)) await stat(join(folder, graph));
    return manifest;
  } catch {
    return null;
  }
}

function describe(manifest: Manifest, { weights, precision, folder }: BuildDecoderOptions): EngineGraphs {
  const { config } = weights;
  const shapes = ADAPTER_GROUPS.map((group) => [group, groupShape(config, group)]);
  return {
    precision,
    digest: manifest.digest,
    config,
    stepFile: join(folder, manifest.graphs.step),
    adapterStepFile: join(folder, manifest.graphs.adapterStep),
    weightsFile: join(folder, manifest.weights.file),
    weightsByteLength: manifest.weights.byteLength,
    maxPositions: config.maxPositions,
    groups: Object.fromEntries(shapes) as Record<AdapterGroup, GroupShape>,
  };
}
