// How fast this machine makes indexes: measured for a few seconds, then remembered.

import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { CancelledError } from '../../errors.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import { readJsonFile, writeJsonFile } from '../../util/json-file.js';
import type { OnProgress } from '../../util/progress.js';
import { GRAPH_DEFAULTS } from '../build/build-index.js';
import type { Embedder } from '../embedder/embedder.js';
import { HnswIndex } from '../hnsw/hnsw-index.js';

const ratesSchema = z.strictObject({
  formatVersion: z.literal(1),
  passagesPerSecond: z.number().positive().describe('Embedded, passages of 100 words.'),
  insertsPerSecond: z.number().positive().describe('Into a graph of `graphSize` vectors.'),
  graphSize: z.number().int().positive(),
  measuredAt: z.iso.datetime(),
});

export type Rates = z.infer<typeof ratesSchema>;

const EMBED_MS = 3_000;
const TEXTS_PER_ROUND = 64;
const GRAPH_VECTORS = 3_000;
const INSERTS_PER_TURN = 32;

export interface MeasureOptions {
  /** Folder of `homeFolder(config)`, where rates are remembered. */
  readonly home: string;
  /** Measure again. */
  readonly afresh?: boolean;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

/** Rates of this machine with this embedder. */
export async function measureRates(embedder: Embedder, options: MeasureOptions): Promise<Rates> {
  const path = join(options.home, 'rates', `${machineKey(embedder)}.json`);
  const known = options.afresh ? null : await readRates(path);
  if (known !== null) return known;
  const passagesPerSecond = await measureEmbedder(embedder, options);
  const insertsPerSecond = await measureGraph(embedder.info.dimension, options);
  const rates: Rates = {
    formatVersion: 1,
    passagesPerSecond,
    insertsPerSecond,
    graphSize: GRAPH_VECTORS,
    measuredAt: new Date().toISOString(),
  };
  await writeJsonFile(path, rates);
  return rates;
}

function machineKey(embedder: Embedder): string {
  const machine = { cpu: cpus()[0]?.model ?? '', cores: availableParallelism() };
  return sha256Hex(canonicalJson({ ...machine, embedder: embedder.info.digest })).slice(0, 16);
}

/** Rates that cannot be read are measured again. */
const readRates = (path: string): Promise<Rates | null> => readJsonFile(path, ratesSchema).catch(() => null);

async function measureEmbedder(embedder: Embedder, { onProgress, signal }: MeasureOptions): Promise<number> {
  const texts = Array.from({ length: TEXTS_PER_ROUND * availableParallelism() }, (_, i) => samplePassage(i));
  await embedder.embed(texts.slice(0, TEXTS_PER_ROUND), 'passage', { signal });
  const start = performance.now();
  let done = 0;
  for (let elapsed = 0; elapsed < EMBED_MS; elapsed = performance.now() - start) {
    await embedder.embed(texts, 'passage', { signal });
    done += texts.length;
    onProgress?.({ stage: 'measure embedder', done, total: null, unit: 'passages' });
  }
  return (1000 * done) / (performance.now() - start);
}

/** A passage of 100 words with about as many names and numbers as an encyclopedia has. */
function samplePassage(number: number): string {
  const year = 1800 + (number % 200);
  const sentences = [
    `The railway between Ljubljana and Trieste was opened in ${year} after eleven years of work.`,
    `Its longest bridge crosses the valley of the Borovnica at a height of 38 metres.`,
    `Engineers from Vienna, Graz and Milan drew the plans, and about ${number + 900} labourers carried them out.`,
    `During the war of ${year + 3} two arches were destroyed; they were rebuilt in steel.`,
    `Since ${year + 60} the line has been electrified, which shortened the journey to ninety minutes.`,
    `A museum in the former station of Logatec shows locomotives, uniforms, signals and tickets of that period.`,
    `The company that ran the trains, Südliche Staatsbahn, was sold to private owners in 1858.`,
  ];
  return sentences.join(' ');
}

async function measureGraph(dimension: number, { onProgress, signal }: MeasureOptions): Promise<number> {
  const graph = HnswIndex.create({ ...GRAPH_DEFAULTS, dimension }, GRAPH_VECTORS);
  const vector = new Float32Array(dimension);
  let seed = 1;
  const start = performance.now();
  for (let label = 0; label < GRAPH_VECTORS; label++) {
    for (let i = 0; i < dimension; i++) {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      vector[i] = seed / 2 ** 31 - 1;
    }
    graph.add(label, vector);
    if (label % INSERTS_PER_TURN !== 0) continue;
    onProgress?.({ stage: 'measure graph', done: label, total: GRAPH_VECTORS, unit: 'vectors' });
    await setImmediate();
    if (signal?.aborted) throw new CancelledError();
  }
  return (1000 * GRAPH_VECTORS) / (performance.now() - start);
}
