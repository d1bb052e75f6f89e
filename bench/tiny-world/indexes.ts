// Indexes over the world's passages: one of all facts, which held-out questions are asked against, and one without
// those behind held-out questions, which training searches. What a policy is trained on can then not hold them.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buildIndex, type Embedder, type PassageInput, type Retriever } from '#searchloop/retrieval/index.js';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import { sha256Hex } from '#searchloop/util/digest.js';
import { worldPassages } from './questions.js';
import type { World } from './world.js';

/** Names of the index folders. */
const WORLD_INDEXES = { all: 'tiny-world', training: 'tiny-world-training' } as const;

const DIMENSION = 8;

/** An index needs vectors, a search by words does not look at them: numbers of a text's digest will do. */
const digestEmbedder: Embedder = {
  info: { id: 'text-digest', digest: sha256Hex(`text digest ${DIMENSION}`), dimension: DIMENSION },
  embed: async (texts) => {
    const vectors = new Float32Array(texts.length * DIMENSION);
    texts.forEach((text, i) => {
      const bytes = Buffer.from(sha256Hex(text), 'hex');
      for (let d = 0; d < DIMENSION; d++) vectors[i * DIMENSION + d] = bytes.readUInt8(d) / 255 - 0.5;
    });
    return vectors;
  },
  close: async () => {},
};

/**
 * Builds both indexes under `folder`, to be searched with `retrieval.kind` bm25.
 * @returns their folders
 */
export async function buildWorldIndexes(
  folder: string,
  world: World,
): Promise<Readonly<Record<keyof typeof WORLD_INDEXES, string>>> {
  const build = async (name: keyof typeof WORLD_INDEXES): Promise<string> => {
    const output = join(folder, WORLD_INDEXES[name]);
    const passages = worldPassages(world, name === 'all' ? ['training', 'held-out'] : ['training']);
    const corpus = passages.map((passage) => `${JSON.stringify(passage)}\n`).join('');
    const input = join(folder, `${WORLD_INDEXES[name]}-${sha256Hex(corpus).slice(0, 12)}.jsonl`);
    if (existsSync(input) && existsSync(join(output, 'manifest.json'))) return output;
    await writeFileAtomic(input, corpus);
    await buildIndex({ input, output, embedder: digestEmbedder, restart: true });
    return output;
  };
  return { all: await build('all'), training: await build('training') };
}

/** Searches a few passages by their words, the title's counting three times and rare ones more, in memory. */
export function wordRetriever(passages: readonly PassageInput[]): Retriever {
  const wordsOf = (text: string): string[] => text.match(/[a-z]+/g) ?? [];
  const shown = passages.map((passage) => ({
    passage,
    title: new Set(wordsOf(passage.title)),
    text: new Set(wordsOf(passage.text)),
  }));
  const spread = new Map<string, number>();
  for (const { text } of shown) for (const word of text) spread.set(word, (spread.get(word) ?? 0) + 1);
  const worth = (word: string): number =>
    Math.log(1 + passages.length / (spread.get(word) ?? passages.length));
  const search = (query: string, k: number) => {
    const words = wordsOf(query);
    const scored = shown.map(({ passage, title, text }) => ({
      ...passage,
      score: words.reduce(
        (sum, word) => sum + worth(word) * ((title.has(word) ? 3 : 0) + (text.has(word) ? 1 : 0)),
        0,
      ),
    }));
    return scored
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .slice(0, k);
  };
  return {
    info: { kind: 'bm25', name: 'in memory', passageCount: passages.length },
    snapshotId: sha256Hex(JSON.stringify(passages)),
    search: async (queries, k) => queries.map((query) => search(query, k)),
    close: async () => {},
  };
}

/** A search engine that knows nothing. */
export const emptyRetriever: Retriever = {
  info: { kind: 'bm25', name: 'empty', passageCount: 0 },
  snapshotId: 'empty',
  search: async (queries) => queries.map(() => []),
  close: async () => {},
};
