import { writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { mulberry32 } from '../../../bench/random.js';
import type { PassageInput } from '../../../src/retrieval/passages/passage-store.js';

const WORDS = `river lake mountain city king queen poem war peace treaty bridge tower ship captain island
  forest desert glacier harbour market painter sculptor violin opera novel comet planet orbit moon telescope
  copper iron silver salt wheat rice cotton silk paper ink printer letter stamp coin museum`.split(/\s+/);

/** Passages of random words; the same for a seed. */
export function makePassages(count: number, seed = 1): PassageInput[] {
  const random = mulberry32(seed);
  const word = (): string => WORDS[Math.floor(random() * WORDS.length)] as string;
  return Array.from({ length: count }, (_, i) => ({
    id: `p${i}`,
    title: `${word()} ${i}`,
    text: Array.from({ length: 5 + Math.floor(random() * 40) }, word).join(' '),
  }));
}

export function writeCorpus(path: string, passages: readonly PassageInput[]): string {
  const text = `${passages.map((passage) => JSON.stringify(passage)).join('\n')}\n`;
  writeFileSync(path, path.endsWith('.gz') ? gzipSync(text) : text);
  return path;
}
