import { execFileSync } from 'node:child_process';
import fs, { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mulberry32 } from '../../../bench/random.js';
import { exactSearch } from '../../../bench/retrieval/exact-search.js';
import { FileFormatError, IntegrityError, InvalidInputError, RetrievalError } from '../../../src/errors.js';
import { readHnswHeader, readHnswVectors } from '../../../src/retrieval/hnsw/hnsw-file.js';
import { HnswIndex, type HnswSettings } from '../../../src/retrieval/hnsw/hnsw-index.js';
import { dot, lengthOf } from '../../../src/retrieval/hnsw/vectors.js';
import { useTemporaryFolder } from '../support/folders.js';
import { randomVector } from '../support/random.js';

const folder = useTemporaryFolder();
const settings = (dimension: number, metric: 'cosine' | 'ip' = 'cosine'): HnswSettings => ({
  dimension,
  metric,
  M: 16,
  efConstruction: 200,
});

function filled(count: number, dimension: number, seed = 1): { index: HnswIndex; vectors: Float32Array[] } {
  const random = mulberry32(seed);
  const vectors = Array.from({ length: count }, () => randomVector(random, dimension));
  const index = HnswIndex.create(settings(dimension), 8);
  for (const [label, vector] of vectors.entries()) index.add(label, vector);
  return { index, vectors };
}

const labels = (found: readonly { label: number }[]): number[] => found.map(({ label }) => label);

describe('search', () => {
  test('finds nearly all true neighbours, in their order and with their cosines', () => {
    const { index, vectors } = filled(3000, 24);
    const path = join(folder(), 'graph.bin');
    index.save(path);
    const random = mulberry32(2);
    const queries = Array.from({ length: 100 }, () => randomVector(random, 24));
    const exact = exactSearch(path, queries, 10, 'cosine');
    let hits = 0;
    queries.forEach((query, q) => {
      const brute = vectors
        .map((vector, label) => ({ label, score: dot(vector, query) / lengthOf(vector) / lengthOf(query) }))
        .sort((a, b) => b.score - a.score)
        .slice(0, 10);
      expect(labels(exact[q]!)).toEqual(labels(brute));
      const found = index.search(query, 10, 100);
      for (const { label, score } of found) {
        const truth = brute.find((candidate) => candidate.label === label);
        if (truth) expect(score).toBeCloseTo(truth.score, 5);
      }
      expect([...found].sort((a, b) => b.score - a.score)).toEqual(found);
      hits += labels(found).filter((label) => labels(brute).includes(label)).length;
    });
    expect(hits / 1000).toBeGreaterThan(0.97);
  });

  test('cosine ranks by direction, not by length; ip ranks by inner product', () => {
    const short = Float32Array.of(0.1, 0);
    const long = Float32Array.of(5, 5);
    for (const [metric, first] of [
      ['cosine', 0],
      ['ip', 1],
    ] as const) {
      const index = HnswIndex.create(settings(2, metric));
      index.add(0, short);
      index.add(1, long);
      expect(labels(index.search(Float32Array.of(3, 0), 2, 10))[0]).toBe(first);
    }
    const index = HnswIndex.create(settings(2));
    index.add(0, short);
    expect(index.search(Float32Array.of(3, 0), 1, 10)[0]?.score).toBeCloseTo(1, 6);
  });

  test('a zero vector is refused on insert and finds nothing as a query; no score is NaN', () => {
    const index = HnswIndex.create(settings(2));
    index.add(0, Float32Array.of(1, 0));
    expect(() => index.add(1, Float32Array.of(0, 0))).toThrow(InvalidInputError);
    expect(index.search(Float32Array.of(0, 0), 1, 10)).toEqual([]);
    expect(() => index.add(1, Float32Array.of(Number.NaN, 1))).toThrow('not finite');
    expect(() => index.search(Float32Array.of(Number.POSITIVE_INFINITY, 1), 1, 10)).toThrow('not finite');
    expect(index.count).toBe(1);
  });

  test('a vector of another length is an error with both numbers, and the process lives', () => {
    const { index } = filled(10, 4);
    expect(() => index.search(new Float32Array(3), 1, 10)).toThrow('expected length 4, came 3');
    expect(() => index.add(1, new Float32Array(5))).toThrow('expected length 4, came 5');
  });

  test('k near or above the count, few live items, an empty index', () => {
    const { index, vectors } = filled(1000, 8);
    expect(index.search(vectors[0]!, 1000, 1)).toHaveLength(1000);
    expect(index.search(vectors[0]!, 5000, 1)).toHaveLength(1000);
    for (let label = 3; label < 1000; label++) index.remove(label);
    expect(labels(index.search(vectors[0]!, 10, 10)).sort()).toEqual([0, 1, 2]);
    expect(index.count).toBe(3);
    for (let label = 0; label < 3; label++) index.remove(label);
    expect(index.search(vectors[0]!, 10, 10)).toEqual([]);
    expect(HnswIndex.create(settings(8)).search(vectors[0]!, 3, 10)).toEqual([]);
  });

  test('labels stay unique after further batches; adding a label again moves it', () => {
    const { index, vectors } = filled(100, 8);
    index.search(vectors[0]!, 50, 50);
    const random = mulberry32(9);
    for (let label = 100; label < 200; label++) index.add(label, randomVector(random, 8));
    const found = labels(index.search(vectors[0]!, 50, 50));
    expect(new Set(found).size).toBe(50);
    index.add(
      7,
      vectors[20]!.map((value) => -value),
    );
    expect(index.count).toBe(200);
    const again = labels(
      index.search(
        vectors[20]!.map((value) => -value),
        200,
        200,
      ),
    );
    expect(again[0]).toBe(7);
    expect(again.filter((label) => label === 7)).toHaveLength(1);
  });

  test('a deleted label can be inserted again, with a new vector', () => {
    const { index, vectors } = filled(50, 8);
    expect(index.remove(5)).toBe(true);
    expect(index.remove(5)).toBe(false);
    expect(index.remove(999)).toBe(false);
    expect(labels(index.search(vectors[5]!, 50, 50))).not.toContain(5);
    const opposite = vectors[5]!.map((value) => -value);
    index.add(5, opposite);
    expect(index.search(opposite, 1, 50)[0]).toMatchObject({ label: 5 });
    expect(index.search(opposite, 1, 50)[0]?.score).toBeCloseTo(1, 5);
    expect(index.count).toBe(50);
  });
});

describe('files', () => {
  test.each([1, 4, 200])('a save whose last %d bytes are missing is an error', (missing) => {
    const { index } = filled(300, 8);
    const path = join(folder(), 'graph.bin');
    index.save(path);
    const { size } = statSync(path);
    const synced = jest
      .spyOn(fs, 'fsyncSync')
      .mockImplementationOnce(() => truncateSync(path, size - missing));
    expect(() => index.save(path)).toThrow(RetrievalError);
    expect(synced).toHaveBeenCalledTimes(1);
    synced.mockRestore();
    index.save(path);
  });

  test('a saved graph is loaded by another process with its count and finds its vectors', () => {
    const { index, vectors } = filled(1000, 8);
    index.remove(3);
    const path = join(folder(), 'graph.bin');
    index.save(path);
    const loaded = HnswIndex.load(path, settings(8), 999);
    expect(loaded.count).toBe(999);
    expect(loaded.remove(3)).toBe(false);
    for (const label of [0, 500, 999]) expect(loaded.search(vectors[label]!, 1, 50)[0]?.label).toBe(label);
    loaded.add(2000, vectors[3]!);
    expect(loaded.search(vectors[3]!, 1, 50)[0]?.label).toBe(2000);
    const script = `const { HierarchicalNSW } = require('hnswlib-node');
      const index = new HierarchicalNSW('ip', 8); index.readIndexSync(process.argv[1]);
      console.log(index.getCurrentCount());`;
    expect(execFileSync(process.execPath, ['-e', script, path], { cwd: __dirname }).toString().trim()).toBe(
      '1000',
    );
  });

  test('an empty graph can be saved, loaded and filled', () => {
    const path = join(folder(), 'graph.bin');
    HnswIndex.create(settings(4)).save(path);
    const loaded = HnswIndex.load(path, settings(4), 0);
    expect(loaded.count).toBe(0);
    loaded.add(0, Float32Array.of(1, 2, 3, 4));
    expect(labels(loaded.search(Float32Array.of(1, 2, 3, 4), 3, 10))).toEqual([0]);
  });

  test('the same vectors in the same order give the same bytes', () => {
    const paths = ['a.bin', 'b.bin'].map((name) => join(folder(), name));
    for (const path of paths) filled(300, 8).index.save(path);
    // Unused capacity and padding are not written; the bytes are those of the graph.
    expect(readFileSync(paths[0]!).equals(readFileSync(paths[1]!))).toBe(true);
  });

  test('stored vectors are read back without hnswlib', () => {
    const { index, vectors } = filled(20, 6);
    index.remove(4);
    const path = join(folder(), 'graph.bin');
    index.save(path);
    expect(readHnswHeader(path)).toMatchObject({ count: 20, dimension: 6, M: 16, efConstruction: 200 });
    const stored = [...readHnswVectors(path)].map(({ label, deleted }) => ({ label, deleted }));
    expect(stored).toEqual(vectors.map((_, label) => ({ label, deleted: label === 4 })));
    for (const { label, vector } of readHnswVectors(path)) {
      const length = lengthOf(vectors[label]!);
      for (const [i, value] of vector.entries()) expect(value).toBeCloseTo(vectors[label]![i]! / length, 6);
    }
  });

  test('another dimension, M or count is refused with both values', () => {
    const path = join(folder(), 'graph.bin');
    filled(20, 8).index.save(path);
    expect(() => HnswIndex.load(path, settings(16), 20)).toThrow(IntegrityError);
    expect(() => HnswIndex.load(path, settings(16), 20)).toThrow(/16.*8/);
    expect(() => HnswIndex.load(path, { ...settings(8), M: 32 }, 20)).toThrow(/32.*16/);
    expect(() => HnswIndex.load(path, settings(8), 19)).toThrow(/19.*20/);
  });

  test('a file that is cut, empty, foreign or has a forged header is refused, and the process lives', () => {
    const path = join(folder(), 'graph.bin');
    filled(50, 8).index.save(path);
    const broken = join(folder(), 'broken.bin');
    const whole = statSync(path).size;
    for (const size of [0, 50, 96, 200, whole - 500, whole - 4]) {
      copyFileSync(path, broken);
      truncateSync(broken, size);
      expect(() => HnswIndex.load(broken, settings(8), 50)).toThrow(FileFormatError);
    }
    writeFileSync(broken, 'x'.repeat(5000));
    expect(() => HnswIndex.load(broken, settings(8), 50)).toThrow(FileFormatError);
    for (const [at, value] of [
      [16, 1n << 40n],
      [24, 7n],
      [32, 1n << 62n],
      [64, 3n],
    ] as const) {
      const bytes = readFileSync(path);
      bytes.writeBigUInt64LE(value, at);
      writeFileSync(broken, bytes);
      expect(() => HnswIndex.load(broken, settings(8), 50)).toThrow(FileFormatError);
    }
  });

  test('a write that hnswlib does not report as failed is noticed', () => {
    const { index } = filled(10, 4);
    expect(() => index.save(join(folder(), 'no', 'such', 'folder', 'graph.bin'))).toThrow(RetrievalError);
  });
});
