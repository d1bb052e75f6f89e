import { existsSync, renameSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  ConflictError,
  IntegrityError,
  NotFoundError,
  RetrievalError,
  UnavailableError,
} from '../../errors.js';
import { openDatabase } from '../../storage/index.js';
import { sha256File } from '../../util/digest.js';
import { readHnswVectors } from '../hnsw/hnsw-file.js';
import { HnswIndex, type HnswSettings, type Neighbor } from '../hnsw/hnsw-index.js';
import {
  type PassageAddition,
  PassageStore,
  type ScoredLabel,
  type StoredPassage,
} from '../passages/passage-store.js';
import { checkConsistency, type IndexManifest, readManifest, writeManifest } from './manifest.js';
import { BUSY_TIMEOUT_MS, openPassages } from './open-passages.js';
import { foldedGraphFile, removeOlderGraphs } from './strays.js';

/** A graph with more deleted elements than this is built anew when it is next saved. */
const MAX_DELETED_SHARE = 0.3;

export interface OpenIndexOptions {
  /** The graph takes the memory; BM25 alone does without. */
  readonly withGraph: boolean;
}

/**
 * An index folder in use: passages on disk, the graph in memory. Several processes may have one folder open; each
 * follows the changes of the others.
 */
export class LocalIndex {
  readonly folder: string;
  #manifest: IndexManifest;
  readonly #store: PassageStore;
  readonly #withGraph: boolean;
  #writer: PassageStore | null = null;
  #graph: HnswIndex | null = null;
  /** Last change that the graph holds; -1 before it is loaded. */
  #graphRevision = -1;
  #dataVersion: unknown;

  private constructor(folder: string, manifest: IndexManifest, store: PassageStore, withGraph: boolean) {
    this.folder = folder;
    this.#manifest = manifest;
    this.#store = store;
    this.#withGraph = withGraph;
  }

  /**
   * @throws {NotFoundError} no index there
   * @throws {IntegrityError} a file is missing, changed or of another index; the message holds both values
   * @throws {UnavailableError} the index holds no passages
   * @throws {ConflictError} another build replaced it meanwhile
   */
  static async open(folder: string, options: OpenIndexOptions): Promise<LocalIndex> {
    const manifest = await readManifest(folder);
    checkConsistency(manifest);
    const store = openPassages(folder, manifest);
    try {
      const index = new LocalIndex(folder, manifest, store, options.withGraph);
      await index.refresh();
      if (options.withGraph && index.#graph === null) throw index.#replaced();
      if (index.count === 0)
        throw new UnavailableError(`index "${manifest.name}" in ${folder} holds no passages`);
      return index;
    } catch (error) {
      store.close();
      throw error;
    }
  }

  get manifest(): IndexManifest {
    return this.#manifest;
  }

  get count(): number {
    return this.#store.count;
  }

  get snapshotId(): string {
    return this.#store.snapshotId;
  }

  has(id: string): boolean {
    return this.#store.labelOf(id) !== null;
  }

  passages(labels: readonly number[]): StoredPassage[] {
    return this.#store.byLabels(labels);
  }

  bm25(query: string, k: number): ScoredLabel[] {
    return this.#store.bm25(query, k);
  }

  /** @param vector f32 [dimension] */
  nearest(vector: Float32Array, k: number, ef: number): Neighbor[] {
    if (this.#graph === null) throw new RetrievalError('the index was opened without its graph');
    return this.#graph.search(vector, k, ef);
  }

  /**
   * Takes over what other connections changed. Cheap when they changed nothing. An index that another build replaced
   * stays as it is where its newest graph is gone.
   */
  async refresh(): Promise<void> {
    const version = this.#store.db.pragma('data_version', { simple: true });
    if (version === this.#dataVersion) return;
    // Others may fold while a graph file is loaded.
    if (this.#withGraph) while (!this.#applyChanges() && (await this.#loadNewestGraph()));
    this.#dataVersion = version;
  }

  /**
   * Durable when it resolves, and searched from then on. @see PassageStore.change
   * @throws {ConflictError} another build replaced the index
   */
  async change(
    additions: readonly PassageAddition[],
    removals: readonly string[],
  ): Promise<{ added: number; removed: number }> {
    const result = (await this.#openWriter()).change(additions, removals);
    await this.refresh();
    return result;
  }

  /**
   * Writes a graph file that holds all changes, so that the next start need not insert them again.
   * @throws {ConflictError} another build replaced the index; it stays
   */
  async fold(): Promise<void> {
    const writer = await this.#openWriter();
    writer.db.exec('BEGIN IMMEDIATE');
    try {
      // Under the lock, which a build takes to put its manifest in place.
      await this.#checkInPlace();
      await this.refresh();
      const revision = this.#graphRevision;
      if (this.#graph !== null && revision > this.#manifest.revision) {
        this.#manifest = await this.#saveGraph(this.#graph, revision);
        writer.forgetChangesUpTo(revision);
        await removeOlderGraphs(this.folder, this.#manifest);
      }
      writer.db.exec('COMMIT');
    } catch (error) {
      // SQLite has ended the transaction itself where the disk failed.
      if (writer.db.inTransaction) writer.db.exec('ROLLBACK');
      throw error;
    }
  }

  close(): void {
    this.#store.close();
    this.#writer?.closeCompact();
    this.#writer = null;
    this.#graph = null;
  }

  async #saveGraph(current: HnswIndex, revision: number): Promise<IndexManifest> {
    const before = this.#manifest;
    const file = foldedGraphFile(before.graph.file, revision);
    const path = join(this.folder, file);
    current.save(`${path}.new`);
    if (current.deletedShare > MAX_DELETED_SHARE) {
      this.#graph = withoutDeleted(`${path}.new`, current.settings);
      this.#graph.save(`${path}.new`);
    }
    renameSync(`${path}.new`, path);
    const { count } = this.#graph as HnswIndex;
    const manifest: IndexManifest = {
      ...before,
      passages: { ...before.passages, count: this.count },
      graph: { ...before.graph, file, bytes: (await stat(path)).size, sha256: await sha256File(path), count },
      revision,
      snapshotId: this.snapshotId,
    };
    checkConsistency(manifest);
    await writeManifest(this.folder, manifest);
    return manifest;
  }

  async #openWriter(): Promise<PassageStore> {
    await this.#checkInPlace();
    const path = join(this.folder, this.#manifest.passages.file);
    this.#writer ??= new PassageStore(
      openDatabase(path, { mustExist: true, busyTimeoutMs: BUSY_TIMEOUT_MS }),
      path,
    );
    return this.#writer;
  }

  /** @throws {ConflictError} the folder holds another index by now */
  async #checkInPlace(): Promise<void> {
    const { passages } = await readManifest(this.folder);
    if (passages.file !== this.#manifest.passages.file) throw this.#replaced();
  }

  #replaced(): ConflictError {
    return new ConflictError(
      `index "${this.#manifest.name}" in ${this.folder}: another build replaced it meanwhile; do it again for the new one`,
    );
  }

  /**
   * Brings the graph up to the journal's end.
   * @returns false when the journal begins after the graph: a newer graph file holds what lies between
   */
  #applyChanges(): boolean {
    return this.#store.db.transaction(() => {
      if (this.#graph === null || this.#store.foldedRevision > this.#graphRevision) return false;
      for (const { revision, label, vector } of this.#store.changesAfter(this.#graphRevision)) {
        if (vector === null) this.#graph.remove(label);
        else this.#graph.add(label, vector);
        this.#graphRevision = revision;
      }
      if (this.#graph.count !== this.count)
        throw new IntegrityError(
          `index "${this.#manifest.name}": expected a vector for each of ${this.count} passages, the graph has ${this.#graph.count}`,
        );
      return true;
    })();
  }

  /** @returns false when the folder holds another index by now */
  async #loadNewestGraph(): Promise<boolean> {
    const { foldedRevision } = this.#store;
    const manifest = await readManifest(this.folder);
    if (manifest.passages.file !== this.#manifest.passages.file) return false;
    if (manifest.revision < foldedRevision)
      throw new IntegrityError(
        `index "${manifest.name}": expected a graph of revision ${foldedRevision} or later, the manifest names one of ${manifest.revision}`,
      );
    const graph = await loadGraph(this.folder, manifest).catch(async (error) => {
      // A fold that came between has taken the file away.
      if ((await readManifest(this.folder)).graph.file !== manifest.graph.file) return null;
      throw error;
    });
    if (graph === null || manifest.revision <= this.#graphRevision) return true;
    this.#manifest = manifest;
    this.#graph = graph;
    this.#graphRevision = manifest.revision;
    return true;
  }
}

/** hnswlib follows links of a damaged file into nowhere, so the whole file is checked before it reads a byte. */
async function loadGraph(folder: string, manifest: IndexManifest): Promise<HnswIndex> {
  const { file, bytes, sha256, count, ...settings } = manifest.graph;
  const path = join(folder, file);
  if (!existsSync(path)) throw new IntegrityError(`index "${manifest.name}": ${path} is missing`);
  const { size } = await stat(path);
  if (size !== bytes) throw new IntegrityError(`${path}: expected ${bytes} bytes, the file has ${size}`);
  const digest = await sha256File(path);
  if (digest !== sha256)
    throw new IntegrityError(`${path}: expected sha256 ${sha256}, came ${digest}`, {
      details: { expected: sha256, actual: digest },
    });
  return HnswIndex.load(path, settings, count);
}

function withoutDeleted(path: string, settings: HnswSettings): HnswIndex {
  const graph = HnswIndex.create(settings);
  for (const { label, vector, deleted } of readHnswVectors(path)) if (!deleted) graph.add(label, vector);
  return graph;
}

/** @throws {NotFoundError} no such index */
export function indexFolder(indexes: string, name: string): string {
  const path = /[/\\]/.test(name) ? name : join(indexes, name);
  if (!existsSync(path)) throw new NotFoundError(`index "${name}": no folder ${path}`);
  return path;
}
