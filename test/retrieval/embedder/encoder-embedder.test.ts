import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { homeFolder, loadConfig } from '../../../src/config/index.js';
import { CancelledError, IntegrityError, NotFoundError, UnsupportedError } from '../../../src/errors.js';
import { importModel, openModel } from '../../../src/model/index.js';
import type { Embedder } from '../../../src/retrieval/embedder/embedder.js';
import { openEncoderEmbedder } from '../../../src/retrieval/embedder/encoder-embedder.js';
import { encoderSource } from '../../../src/retrieval/embedder/encoder-source.js';
import { openParallelEmbedder } from '../../../src/retrieval/embedder/parallel-embedder.js';
import { dot, lengthOf } from '../../../src/retrieval/hnsw/vectors.js';
import { openSafetensorsFile } from '../../../src/weights/index.js';
import { fixture } from '../../support/fixtures.js';
import { homeOf, importTinyEncoder } from '../support/encoder.js';
import { useTemporaryFolder } from '../support/folders.js';

const folder = useTemporaryFolder();
const TOLERANCE = 1e-5;

function stored(path: string, name: string): Float32Array {
  const source = openSafetensorsFile(path);
  try {
    return source.readFloat32(name);
  } finally {
    source.close();
  }
}

const row = (matrix: Float32Array, i: number, dimension: number): Float32Array =>
  matrix.subarray(i * dimension, (i + 1) * dimension);

const distance = (a: Float32Array, b: Float32Array): number =>
  Math.max(...a.map((value, i) => Math.abs(value - (b[i] as number))));

async function using<T>(embedder: Embedder, work: (embedder: Embedder) => Promise<T>): Promise<T> {
  try {
    return await work(embedder);
  } finally {
    await embedder.close();
  }
}

const tiny = (): { cases: { text: string; ids: number[] }[] } =>
  JSON.parse(readFileSync(fixture('forward', 'tiny-bert.json'), 'utf8'));

describe('a small encoder', () => {
  test.each(['mean', 'cls'] as const)(
    '%s pooling gives the stored vectors from the texts',
    async (pooling) => {
      const texts = tiny().cases.map(({ text }) => text);
      const source = await importTinyEncoder(homeOf(folder()), 'tiny', { pooling });
      const expected = stored(fixture('forward', 'tiny-bert.safetensors'), pooling);
      await using(await openEncoderEmbedder(source, { threads: 1 }), async (embedder) => {
        expect(embedder.info).toEqual({ id: 'tiny', digest: source.digest, dimension: 64 });
        const vectors = await embedder.embed(texts, 'passage');
        for (const [i] of texts.entries())
          expect(distance(row(vectors, i, 64), row(expected, i, 64))).toBeLessThan(TOLERANCE);
      });
    },
  );

  test('order of the texts, batches and threads do not matter', async () => {
    const source = await importTinyEncoder(homeOf(folder()));
    const texts = Array.from({ length: 150 }, (_, i) => 'word '.repeat((i * 7) % 60) + i);
    const alone = await using(await openEncoderEmbedder(source, { threads: 1 }), (embedder) =>
      embedder.embed(texts, 'passage'),
    );
    const parallel = await using(await openParallelEmbedder(source, { workers: 2 }), async (embedder) => {
      expect(embedder.info).toEqual({ id: 'tiny-bert', digest: source.digest, dimension: 64 });
      return embedder.embed([...texts].reverse(), 'passage');
    });
    for (const [i] of texts.entries()) {
      expect(distance(row(alone, i, 64), row(parallel, 149 - i, 64))).toBeLessThan(TOLERANCE);
      expect(lengthOf(row(alone, i, 64))).toBeCloseTo(1, 5);
    }
  });

  test('queries and passages get their prefixes; long texts are cut, empty ones have a vector', async () => {
    const conventions = { queryPrefix: 'query: ', passagePrefix: 'passage: ', maxTokens: 16 };
    const home = homeOf(folder());
    const plain = await openEncoderEmbedder(await importTinyEncoder(home, 'plain', { maxTokens: 16 }), {
      threads: 1,
    });
    const prefixed = await openEncoderEmbedder(await importTinyEncoder(home, 'prefixed', conventions), {
      threads: 1,
    });
    for (const kind of ['query', 'passage'] as const)
      expect(distance(await prefixed.embed(['sky'], kind), await plain.embed([`${kind}: sky`], kind))).toBe(
        0,
      );
    const long = 'the sky is blue '.repeat(10);
    expect(
      distance(await plain.embed([long], 'passage'), await plain.embed([`${long} more`], 'passage')),
    ).toBe(0);
    expect(lengthOf(await plain.embed([''], 'query'))).toBeCloseTo(1, 5);
    expect(await plain.embed([], 'query')).toHaveLength(0);
    await plain.close();
    await prefixed.close();
  });

  test('control tokens in a text are text', async () => {
    const source = await importTinyEncoder(homeOf(folder()));
    await using(await openEncoderEmbedder(source, { threads: 1 }), async (embedder) => {
      const vectors = await embedder.embed(['[SEP]', '[CLS]', '[PAD]'], 'passage');
      expect(vectors.every(Number.isFinite)).toBe(true);
    });
  });

  test('a fired signal ends it', async () => {
    const source = await importTinyEncoder(homeOf(folder()));
    await using(await openEncoderEmbedder(source, { threads: 1 }), async (embedder) => {
      const options = { signal: AbortSignal.abort() };
      await expect(embedder.embed(['a'], 'query', options)).rejects.toThrow(CancelledError);
    });
  });

  test('other conventions are another embedder; a model that is not the located one is refused', async () => {
    const home = homeOf(folder());
    const source = await importTinyEncoder(home, 'a');
    const same = await importTinyEncoder(home, 'b');
    const other = await importTinyEncoder(home, 'c', { queryPrefix: 'q: ' });
    expect(same.digest).toBe(source.digest);
    expect(other.digest).not.toBe(source.digest);
    const wrong = openEncoderEmbedder({ ...other, digest: source.digest }, { threads: 1 });
    await expect(wrong).rejects.toThrow(IntegrityError);
    await expect(openEncoderEmbedder({ ...source, id: 'none' }, { threads: 1 })).rejects.toThrow(
      NotFoundError,
    );
  });

  test('a decoder is refused', async () => {
    const home = homeOf(folder());
    const model = await importModel(fixture('models', 'tiny-llama'), home, { id: 'llama' });
    expect(() => encoderSource(home, model)).toThrow(UnsupportedError);
  });
});

describe('all-MiniLM-L6-v2', () => {
  test('gives the stored vectors from the texts', async () => {
    const home = homeFolder(loadConfig());
    const model = await openModel(home, 'all-minilm-l6-v2').catch((cause) => {
      throw new Error('this test needs the real model: searchloop models pull all-minilm-l6-v2', { cause });
    });
    const { cases } = JSON.parse(readFileSync(fixture('minilm', 'tokens.json'), 'utf8')) as {
      cases: { text: string }[];
    };
    const expected = stored(join(fixture('minilm'), 'embeddings.safetensors'), 'embeddings');
    await using(await openEncoderEmbedder(encoderSource(home, model), { threads: 2 }), async (embedder) => {
      const vectors = await embedder.embed(
        cases.map(({ text }) => text),
        'passage',
      );
      for (const [i, { text }] of cases.entries()) {
        // The library that stored them takes control tokens in a text for what they name; here they are text.
        if (text.includes('[SEP]'))
          expect(dot(row(vectors, i, 384), row(expected, i, 384))).toBeLessThan(0.99);
        else expect(distance(row(vectors, i, 384), row(expected, i, 384))).toBeLessThan(TOLERANCE);
      }
    });
  });
});
