// A tiny honest embedder: each word has a fixed pseudo-random direction, a text is the sum of its words.

import { createHash } from 'node:crypto';
import type { Embedder } from '../../../src/retrieval/embedder/embedder.js';

export interface WordEmbedder extends Embedder {
  /** Texts embedded so far, by call. */
  readonly calls: string[][];
}

export function createWordEmbedder(dimension = 16, id = 'words'): WordEmbedder {
  const calls: string[][] = [];
  return {
    calls,
    info: { id, digest: createHash('sha256').update(`${id}/${dimension}`).digest('hex'), dimension },
    async embed(texts) {
      calls.push([...texts]);
      const matrix = new Float32Array(texts.length * dimension);
      texts.forEach((text, row) => {
        for (const word of text.toLowerCase().match(/\w+/g) ?? ['?'])
          addDirection(matrix.subarray(row * dimension, (row + 1) * dimension), word);
      });
      return matrix;
    },
    async close() {},
  };
}

const directions = new Map<string, Float32Array>();

function addDirection(vector: Float32Array, word: string): void {
  const key = `${word}/${vector.length}`;
  let direction = directions.get(key);
  if (direction === undefined) {
    direction = Float32Array.from(
      vector,
      (_, i) => createHash('sha256').update(`${word}/${i}`).digest().readInt16LE(0) / 32768,
    );
    directions.set(key, direction);
  }
  for (let i = 0; i < vector.length; i++) vector[i] = (vector[i] as number) + (direction[i] as number);
}
