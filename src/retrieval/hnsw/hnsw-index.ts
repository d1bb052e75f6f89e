import { closeSync, existsSync, fsyncSync, openSync, rmSync } from 'node:fs';
// A CommonJS package without named exports that Node.js could see.
import hnswlib from 'hnswlib-node';
import { FileFormatError, IntegrityError, InvalidInputError, RetrievalError } from '../../errors.js';
import { checkDimension, checkHnswEnd, readDeletedLabels, readHnswHeader } from './hnsw-file.js';
import { lengthOf } from './vectors.js';

/** `cosine`: vectors are normalised here, once on insert and once on query. `ip`: they are taken as they are. */
export type Metric = 'cosine' | 'ip';

export interface HnswSettings {
  readonly dimension: number;
  readonly metric: Metric;
  /** Links of an element on each level above 0; twice as many on level 0. */
  readonly M: number;
  /** Width of the search that finds neighbours while building. */
  readonly efConstruction: number;
}

export interface Neighbor {
  readonly label: number;
  /** Inner product (for `cosine` of normalised vectors); higher is nearer. */
  readonly score: number;
}

/** Least and most links of an element: with one there is no way back, and hnswlib takes no more. */
export const LINKS = { least: 2, most: 10_000 } as const;

/** Seed of the levels, so that the same vectors in the same order give the same graph. */
const SEED = 100;

/**
 * Approximate nearest neighbours over hnswlib: Malkov and Yashunin, arXiv:1603.09320.
 * Labels are numbers that the caller chooses, at most 2^32 - 1.
 */
export class HnswIndex {
  readonly settings: HnswSettings;
  readonly #native: hnswlib.HierarchicalNSW;
  readonly #deleted: Set<number>;

  private constructor(settings: HnswSettings, native: hnswlib.HierarchicalNSW, deleted: Set<number>) {
    this.settings = settings;
    this.#native = native;
    this.#deleted = deleted;
  }

  static create(settings: HnswSettings, capacity = 1024): HnswIndex {
    const native = new hnswlib.HierarchicalNSW('ip', settings.dimension);
    native.initIndex(Math.max(1, capacity), settings.M, settings.efConstruction, SEED);
    return new HnswIndex(settings, native, new Set());
  }

  /**
   * Loads a saved graph of `count` live vectors.
   * @throws {FileFormatError} not an HNSW file
   * @throws {IntegrityError} dimension, M or count of the file are not the expected ones
   */
  static load(path: string, settings: HnswSettings, count: number): HnswIndex {
    const header = readHnswHeader(path);
    checkDimension(path, header, settings.dimension);
    if (header.M !== settings.M)
      throw new IntegrityError(`${path}: expected a graph with M ${settings.M}, the file has M ${header.M}`);
    const deleted = header.count === count ? new Set<number>() : readDeletedLabels(path);
    if (header.count - deleted.size !== count)
      throw new IntegrityError(
        `${path}: expected ${count} vectors, the file holds ${header.count - deleted.size}`,
      );
    // hnswlib loads an empty graph with room for nothing.
    if (header.count === 0) return HnswIndex.create(settings);
    // A new object for every load: after a failed load on a used one hnswlib-node frees its memory twice.
    const native = new hnswlib.HierarchicalNSW('ip', settings.dimension);
    try {
      native.readIndexSync(path);
    } catch (cause) {
      throw new FileFormatError(`${path}: ${(cause as Error).message}`, { cause });
    }
    return new HnswIndex(settings, native, deleted);
  }

  /** Vectors that a search can find. */
  get count(): number {
    return this.#native.getCurrentCount() - this.#deleted.size;
  }

  /** Share of the graph's elements that are deleted; they cost memory and time until the graph is rebuilt. */
  get deletedShare(): number {
    const all = this.#native.getCurrentCount();
    return all === 0 ? 0 : this.#deleted.size / all;
  }

  /**
   * Inserts a vector; a label that is there (or was deleted) gets the new vector.
   * @param vector f32 [dimension]
   * @throws {InvalidInputError} wrong length, not finite, or (for cosine) all zeros
   */
  add(label: number, vector: Float32Array): void {
    const point = this.#prepare(vector, `vector of label ${label}`);
    if (point === null) throw new InvalidInputError(`vector of label ${label}: all zeros has no direction`);
    const capacity = this.#native.getMaxElements();
    if (this.#native.getCurrentCount() >= capacity) this.#native.resizeIndex(Math.ceil(capacity * 1.5) + 1);
    this.#native.addPoint(point, label);
    this.#deleted.delete(label);
  }

  /** @returns whether the label was there */
  remove(label: number): boolean {
    if (this.#deleted.has(label) || !this.#has(label)) return false;
    this.#native.markDelete(label);
    this.#deleted.add(label);
    return true;
  }

  /**
   * The k nearest, best first; fewer when the index holds fewer, [] for a zero vector or an empty index.
   * @param vector f32 [dimension]
   * @param ef     width of the search, raised to k
   * @throws {InvalidInputError} wrong length or not finite
   */
  search(vector: Float32Array, k: number, ef: number): Neighbor[] {
    const point = this.#prepare(vector, 'query vector');
    const wanted = Math.min(k, this.count);
    if (point === null || wanted < 1) return [];
    this.#native.setEf(Math.max(ef, wanted));
    const { neighbors, distances } = this.#native.searchKnn(point, wanted);
    return neighbors.map((label, i) => ({ label, score: 1 - (distances[i] as number) }));
  }

  /**
   * Writes the graph. hnswlib reports no failed write (a full disk, a missing folder), so the file is read back.
   * @throws {RetrievalError} the file is not what was to be written
   */
  save(path: string): void {
    rmSync(path, { force: true });
    this.#native.writeIndexSync(path);
    syncFile(path);
    try {
      const { count } = readHnswHeader(path);
      checkHnswEnd(path);
      if (count === this.#native.getCurrentCount()) return;
    } catch (cause) {
      throw new RetrievalError(`could not write the graph to ${path}`, { cause });
    }
    throw new RetrievalError(`could not write the graph to ${path}: the file holds other counts than memory`);
  }

  #has(label: number): boolean {
    try {
      this.#native.getPoint(label);
      return true;
    } catch {
      return false;
    }
  }

  /** Plain array for hnswlib (it takes no typed arrays); null for a zero vector under cosine. */
  #prepare(vector: Float32Array, what: string): number[] | null {
    const { dimension, metric } = this.settings;
    if (vector.length !== dimension)
      throw new InvalidInputError(`${what}: expected length ${dimension}, came ${vector.length}`);
    const length = lengthOf(vector);
    if (!Number.isFinite(length)) throw new InvalidInputError(`${what}: holds a number that is not finite`);
    if (metric === 'ip') return Array.from(vector);
    if (length === 0) return null;
    return Array.from(vector, (value) => value / length);
  }
}

function syncFile(path: string): void {
  if (!existsSync(path)) return;
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
