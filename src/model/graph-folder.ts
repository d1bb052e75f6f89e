// Built graphs in a folder: graph files, one weights file, and a manifest that is written last and says what they are.

import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Graph, toOnnx } from '../graph/index.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { canonicalJson, sha256Hex } from '../util/digest.js';
import type { WeightsFile } from './weights-file.js';

/** Changes when graphs or weights would come out differently from the same source. */
const FORMAT = 4;

export interface BuiltGraphs<Name extends string> {
  /** sha256 over graphs and weights. */
  readonly digest: string;
  /** Paths of the graph files. */
  readonly files: Readonly<Record<Name, string>>;
  readonly weightsFile: string;
  readonly weightsByteLength: number;
  readonly weightsTensors: WeightsFile['tensors'];
}

export interface GraphFolderOptions<Name extends string> {
  readonly folder: string;
  /** Name of this set of graphs in the folder, such as `q8`. */
  readonly set: string;
  /** Everything that decides the outcome; a set that was built from something else is built again. */
  readonly source: unknown;
  readonly names: readonly Name[];
  writeWeights(path: string): Promise<WeightsFile>;
  buildGraph(name: Name, weights: WeightsFile): Graph;
}

interface Manifest {
  readonly key: string;
  readonly digest: string;
  readonly weights: WeightsFile;
  readonly graphs: Readonly<Record<string, string>>;
}

/** Builds a set of graphs, or finds what an earlier call left. A build that was killed leaves nothing taken for whole. */
export async function graphsInFolder<Name extends string>(
  options: GraphFolderOptions<Name>,
): Promise<BuiltGraphs<Name>> {
  const { folder, set, names } = options;
  const key = sha256Hex(canonicalJson({ format: FORMAT, source: options.source, names }));
  const manifestPath = join(folder, `graphs-${set}.json`);
  let manifest = await readManifest(manifestPath, folder, key);
  if (manifest === null) {
    // From here on an older manifest would speak of files that are being replaced.
    await rm(manifestPath, { force: true });
    manifest = await build(options, key);
    await writeFileAtomic(manifestPath, `${JSON.stringify(manifest)}\n`);
  }
  const paths = names.map((name) => [name, join(folder, manifest.graphs[name] as string)]);
  return {
    digest: manifest.digest,
    files: Object.fromEntries(paths) as Record<Name, string>,
    weightsFile: join(folder, manifest.weights.file),
    weightsByteLength: manifest.weights.byteLength,
    weightsTensors: manifest.weights.tensors,
  };
}

async function build<Name extends string>(options: GraphFolderOptions<Name>, key: string): Promise<Manifest> {
  const { folder, set, names } = options;
  const weights = await options.writeWeights(join(folder, `weights-${set}.bin`));
  const graphs: Record<string, string> = {};
  const digests = [weights.sha256];
  for (const name of names) {
    const bytes = toOnnx(options.buildGraph(name, weights));
    graphs[name] = `${name}-${set}.onnx`;
    digests.push(sha256Hex(bytes));
    await writeFileAtomic(join(folder, graphs[name]), bytes);
  }
  return { key, digest: sha256Hex(digests.join()), weights, graphs };
}

/** The manifest, if it is of this key and its files are there in full length. */
async function readManifest(path: string, folder: string, key: string): Promise<Manifest | null> {
  try {
    const manifest = JSON.parse(await readFile(path, 'utf8')) as Manifest;
    if (manifest.key !== key) return null;
    const weights = await stat(join(folder, manifest.weights.file));
    if (weights.size !== manifest.weights.byteLength) return null;
    for (const graph of Object.values(manifest.graphs)) await stat(join(folder, graph));
    return manifest;
  } catch {
    return null;
  }
}
