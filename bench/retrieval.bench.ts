// An index of a real corpus (build time, memory, recall against exact search, latency) and a graph of a million
// synthetic vectors. The corpus and its questions are read from a folder; they do not come with the project.
//
//   npm run bench -- retrieval --data FOLDER [--output FOLDER] [--vectors 1000000] [--queries 300]
//
// FOLDER holds corpus.jsonl.gz ({id, title, text} lines) and questions-dev.jsonl ({question} lines). Both parts
// resume: a built index and a saved graph are used again, and their build figures with them.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { homeFolder, loadConfig } from '#searchloop/config/index.js';
import {
  buildIndex,
  createRetriever,
  type Embedder,
  HnswIndex,
  type IndexManifest,
  locateEncoder,
  openParallelEmbedder,
} from '#searchloop/retrieval/index.js';
import { xorshift32 } from './random.js';
import { type Figure, note, percentile, printReport } from './report.js';
import { exactSearch } from './retrieval/exact-search.js';

const DIMENSION = 384;
const GIB = 2 ** 30;

export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      data: { type: 'string' },
      output: { type: 'string' },
      vectors: { type: 'string', default: '1000000' },
      queries: { type: 'string', default: '300' },
    },
  });
  const config = loadConfig();
  const output = values.output ?? join(homeFolder(config), 'bench', 'indexes');
  mkdirSync(output, { recursive: true });
  const figures: Figure[] = [];
  const notes: string[] = [];
  if (values.data === undefined) notes.push('corpus part left out: no --data FOLDER was given');
  else figures.push(...(await corpusPart(values.data, output, Number(values.queries))));
  if (Number(values.vectors) > 0) figures.push(...synthetic(output, Number(values.vectors)));
  printReport('retrieval', figures, notes);
  return 0;
}

interface BuildFigures {
  readonly seconds: number;
  readonly peakBytes: number;
}

/** Runs a build and keeps what it cost beside what it built, since a later run finds it built. */
async function measured(record: string, build: () => Promise<void>): Promise<BuildFigures> {
  if (existsSync(record)) return JSON.parse(readFileSync(record, 'utf8')) as BuildFigures;
  const begin = performance.now();
  let peakBytes = 0;
  const watch = () => {
    peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
  };
  const timer = setInterval(watch, 500);
  await build();
  clearInterval(timer);
  watch();
  const figures = { seconds: (performance.now() - begin) / 1000, peakBytes };
  writeFileSync(record, JSON.stringify(figures));
  return figures;
}

async function corpusPart(data: string, output: string, count: number): Promise<Figure[]> {
  const config = loadConfig({ flags: { 'retrieval.index': join(output, 'corpus') } });
  const files = await locateEncoder(config);
  const embedder = await openParallelEmbedder(files);
  const folder = join(output, 'corpus');
  const cost = await measured(join(output, 'corpus.build.json'), async () => {
    await buildIndex({
      input: join(data, 'corpus.jsonl.gz'),
      output: folder,
      name: 'corpus',
      embedder,
      onProgress: ({ stage, done, total }) => note(`${stage} ${done} of ${total}`),
    });
  });
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as IndexManifest;
  const questions = readFileSync(join(data, 'questions-dev.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { question: string }).question);
  const step = Math.max(1, Math.floor(questions.length / count));
  const picked = questions.filter((_, index) => index % step === 0).slice(0, count);
  const recall = await recalls(folder, manifest, embedder, picked, config.retrieval.ef);
  await embedder.close();
  const latencies = await searchLatencies(config, picked);
  return [
    { name: 'corpus: passages', value: manifest.passages.count, unit: 'passages', goal: null },
    { name: 'corpus: build', value: cost.seconds, unit: 's', goal: null },
    { name: 'corpus: peak memory of the build', value: cost.peakBytes / GIB, unit: 'GiB', goal: null },
    {
      name: 'corpus: recall@3 against exact search',
      value: recall.at3,
      unit: 'share',
      goal: { least: 0.99 },
    },
    { name: 'corpus: recall@10 against exact search', value: recall.at10, unit: 'share', goal: null },
    ...latencies,
  ];
}

async function recalls(
  folder: string,
  manifest: IndexManifest,
  embedder: Embedder,
  questions: readonly string[],
  ef: number,
) {
  const { graph } = manifest;
  const path = join(folder, graph.file);
  const index = HnswIndex.load(path, graph, graph.count);
  const flat = await embedder.embed(questions, 'query');
  const vectors = questions.map((_, i) => flat.subarray(i * graph.dimension, (i + 1) * graph.dimension));
  const truth = exactSearch(path, vectors, 10, graph.metric);
  return {
    at3: recallAt(index, vectors, truth, 3, ef),
    at10: recallAt(index, vectors, truth, 10, ef),
  };
}

function recallAt(
  index: HnswIndex,
  vectors: readonly Float32Array[],
  truth: readonly (readonly { label: number }[])[],
  k: number,
  ef: number,
): number {
  let found = 0;
  for (const [i, vector] of vectors.entries()) {
    const labels = new Set(index.search(vector, k, ef).map(({ label }) => label));
    found += truth[i]!.slice(0, k).filter(({ label }) => labels.has(label)).length;
  }
  return found / (vectors.length * k);
}

/** Whole searches as a rollout sees them: embedding, graph, passages, worker thread; no query twice. */
async function searchLatencies(
  config: ReturnType<typeof loadConfig>,
  questions: readonly string[],
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const kind of ['hnsw', 'bm25', 'hybrid'] as const) {
    const retriever = await createRetriever({ ...config, retrieval: { ...config.retrieval, kind } });
    await retriever.search(['warm up'], 3);
    const times: number[] = [];
    for (const question of questions) {
      const begin = performance.now();
      await retriever.search([question], 3);
      times.push(performance.now() - begin);
    }
    await retriever.close();
    figures.push(
      { name: `corpus: ${kind} search, median`, value: percentile(times, 0.5), unit: 'ms', goal: null },
      { name: `corpus: ${kind} search, p95`, value: percentile(times, 0.95), unit: 'ms', goal: null },
    );
  }
  return figures;
}

/**
 * Vectors with the structure of embeddings: a few thousand centres, each vector near one of them. Uniform noise in
 * 384 dimensions has no neighbours worth finding.
 */
function vectorMaker(seed: number): () => Float32Array {
  const random = xorshift32(seed);
  const uniform = () => random() - 0.5;
  const centres = Array.from({ length: 4096 }, () => Float32Array.from({ length: DIMENSION }, uniform));
  return () => {
    const centre = centres[Math.floor((uniform() + 0.5) * centres.length)]!;
    return centre.map((value) => value + 0.8 * uniform());
  };
}

function synthetic(output: string, count: number): Figure[] {
  const settings = { dimension: DIMENSION, metric: 'cosine', M: 16, efConstruction: 200 } as const;
  const path = join(output, `synthetic-${count}.hnsw`);
  const record = `${path}.build.json`;
  const next = vectorMaker(7);
  if (!existsSync(record)) {
    const begin = performance.now();
    const index = HnswIndex.create(settings, count);
    for (let label = 0; label < count; label++) {
      index.add(label, next());
      if (label % 20_000 === 0) note(`synthetic ${label} of ${count}`);
    }
    index.save(path);
    writeFileSync(record, JSON.stringify({ seconds: (performance.now() - begin) / 1000 }));
  }
  const { seconds } = JSON.parse(readFileSync(record, 'utf8')) as { seconds: number };
  const before = process.memoryUsage.rss();
  const index = HnswIndex.load(path, settings, count);
  const held = process.memoryUsage.rss() - before;
  const makeQuery = vectorMaker(7);
  const queries = Array.from({ length: 200 }, makeQuery).map((vector, i) => {
    // Near stored vectors, but not equal to one.
    return vector.map((value, d) => value + 0.1 * Math.sin(i * 31 + d));
  });
  const truth = exactSearch(path, queries, 10, 'cosine');
  const figures: Figure[] = [
    { name: 'synthetic: vectors', value: count, unit: 'vectors', goal: null },
    { name: 'synthetic: build', value: seconds, unit: 's', goal: null },
    { name: 'synthetic: memory of the loaded graph', value: held / GIB, unit: 'GiB', goal: { most: 4 } },
  ];
  for (const ef of [32, 64, 128, 256]) {
    const times = queries.map((query) => {
      const begin = performance.now();
      index.search(query, 10, ef);
      return performance.now() - begin;
    });
    figures.push(
      {
        name: `synthetic: recall@10 at ef ${ef}`,
        value: recallAt(index, queries, truth, 10, ef),
        unit: 'share',
        goal: null,
      },
      {
        name: `synthetic: search at ef ${ef}, median`,
        value: percentile(times, 0.5),
        unit: 'ms',
        goal: null,
      },
    );
  }
  return figures;
}
