import { setImmediate } from 'node:timers/promises';
import { IntegrityError } from '../../errors.js';
import type { Database } from '../../storage/index.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import { toFtsQuery } from './fts-query.js';

export interface PassageInput {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

export interface StoredPassage extends PassageInput {
  /** Number that vectors and full text know the passage by; never used again after a removal. */
  readonly label: number;
}

export interface PassageAddition {
  readonly passage: PassageInput;
  /** f32 [dimension] */
  readonly vector: Float32Array;
}

/** One journalled change of the set of vectors. `vector` null: the label was removed. */
export interface VectorChange {
  readonly revision: number;
  readonly label: number;
  readonly vector: Float32Array | null;
}

export interface ScoredLabel {
  readonly label: number;
  readonly score: number;
}

const SCHEMA_VERSION = 1;
/** Matches in the title count this many times as much as matches in the text. */
const TITLE_WEIGHT = 3;

const SCHEMA = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE passages (
    label INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL);
  CREATE VIRTUAL TABLE passages_fts USING fts5(
    title, text, content='passages', content_rowid='label', tokenize='porter unicode61 remove_diacritics 2');
  CREATE TABLE changes (
    revision INTEGER NOT NULL, label INTEGER NOT NULL, vector BLOB, PRIMARY KEY (revision, label));
  CREATE TABLE revisions (revision INTEGER PRIMARY KEY, snapshot TEXT NOT NULL);
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/**
 * Passages on disk with a full-text index. The database is also the journal of later changes: a change and its
 * vectors commit together, and a graph file that was saved earlier is brought up to date from `changes`.
 */
export class PassageStore {
  readonly db: Database;
  readonly #path: string;
  readonly #statements: Statements;

  constructor(db: Database, path: string) {
    this.db = db;
    this.#path = path;
    const version = db.pragma('user_version', { simple: true });
    if (version === 0 && tableCount(db) === 0) db.exec(SCHEMA);
    else if (version !== SCHEMA_VERSION)
      throw new IntegrityError(
        `${path}: expected passage store version ${SCHEMA_VERSION}, came ${String(version)}`,
      );
    this.#statements = prepareStatements(db);
  }

  get path(): string {
    return this.#path;
  }

  get count(): number {
    return Number(this.meta('count') ?? 0);
  }

  /** Number of the last change; 0 after a build, -1 before its end. */
  get revision(): number {
    return (this.#statements.lastRevision.get() as number | null) ?? -1;
  }

  /** Names the exact content at a revision; null when there was no such revision. */
  snapshotAt(revision: number): string | null {
    return (this.#statements.snapshotAt.get(revision) as string | undefined) ?? null;
  }

  /** Names the exact content. */
  get snapshotId(): string {
    return this.snapshotAt(this.revision) ?? '';
  }

  setSnapshot(revision: number, snapshotId: string): void {
    this.#statements.setSnapshot.run(revision, snapshotId);
  }

  meta(key: string): string | null {
    return (this.#statements.getMeta.get(key) as string | undefined) ?? null;
  }

  setMeta(key: string, value: string): void {
    this.#statements.setMeta.run(key, value);
  }

  /** Rows as they are, where `count` is the number that is kept of them. */
  countRows(): { readonly passages: number; readonly indexed: number } {
    const rows = (table: string): number =>
      this.db.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number;
    return { passages: rows('passages'), indexed: rows('passages_fts_docsize') };
  }

  labelOf(id: string): number | null {
    return (this.#statements.labelOf.get(id) as number | undefined) ?? null;
  }

  /** Passages of these labels in this order; labels that are gone are left out. */
  byLabels(labels: readonly number[]): StoredPassage[] {
    return labels.flatMap((label) => {
      const row = this.#statements.byLabel.get(label) as StoredPassage | undefined;
      return row === undefined ? [] : [row];
    });
  }

  /** At most `limit` passages with labels from `first` on, by label. */
  page(first: number, limit: number): StoredPassage[] {
    return this.#statements.page.all(first, limit) as StoredPassage[];
  }

  *all(pageSize = 1000): Generator<StoredPassage> {
    for (let first = 0; ; ) {
      const rows = this.page(first, pageSize);
      yield* rows;
      if (rows.length < pageSize) return;
      first = (rows[rows.length - 1] as StoredPassage).label + 1;
    }
  }

  /**
   * The k best passages by Okapi BM25 (FTS5: k1 1.2, b 0.75) over title and text; higher is better.
   * [] when the text has no word.
   */
  bm25(text: string, k: number): ScoredLabel[] {
    const query = toFtsQuery(text);
    return query === null ? [] : (this.#statements.bm25.all(query, k) as ScoredLabel[]);
  }

  /** Inserts one passage under a label of its own; call inside a transaction. @returns false when the id is taken */
  insert(label: number, passage: PassageInput): boolean {
    const { id, title, text } = passage;
    if (this.#statements.insert.run(label, id, title, text).changes === 0) return false;
    this.#statements.insertText.run(label, title, text);
    return true;
  }

  /** Takes a passage out; call inside a transaction. @returns its label, null when there is none of this id */
  delete(id: string): number | null {
    const label = this.labelOf(id);
    const row = label === null ? undefined : this.byLabels([label])[0];
    if (label === null || row === undefined) return null;
    this.#statements.deleteText.run(label, row.title, row.text);
    this.#statements.delete.run(label);
    return label;
  }

  /** sha256 over all passages in the order of their labels. The event loop gets turns, so that a signal can fire. */
  async contentDigest(signal?: AbortSignal): Promise<string> {
    let digest = sha256Hex('');
    let lines: string[] = [];
    const close = (): void => {
      digest = sha256Hex(`${digest}\n${lines.join('\n')}`);
      lines = [];
    };
    for (const { id, title, text } of this.all()) {
      lines.push(JSON.stringify([id, title, text]));
      if (lines.length < 1000) continue;
      close();
      await setImmediate();
      signal?.throwIfAborted();
    }
    close();
    return digest;
  }

  /**
   * Adds and removes passages in one durable transaction and journals their vectors. An id that is there already
   * gets the new content. Ids to remove that are not there are ignored.
   * @returns how many were added and removed; the revision grows by one unless nothing changed
   */
  change(
    additions: readonly PassageAddition[],
    removals: readonly string[],
  ): { added: number; removed: number } {
    const run = this.db.transaction(() => {
      const revision = this.revision + 1;
      let label = Number(this.meta('nextLabel') ?? 0);
      const drop = (id: string): boolean => {
        const gone = this.delete(id);
        if (gone !== null) this.#statements.journal.run(revision, gone, null);
        return gone !== null;
      };
      const removed = removals.filter(drop).length;
      let replaced = 0;
      for (const { passage, vector } of additions) {
        if (drop(passage.id)) replaced++;
        this.insert(label, passage);
        this.#statements.journal.run(revision, label, bytesOf(vector));
        label++;
      }
      if (removed + additions.length > 0) {
        this.setMeta('nextLabel', String(label));
        this.setMeta('count', String(this.count - removed - replaced + additions.length));
        const content = canonicalJson({ add: additions.map(({ passage }) => passage), remove: removals });
        this.setSnapshot(revision, sha256Hex(`${this.snapshotId}\n${content}`));
      }
      return { added: additions.length, removed };
    });
    return run.immediate();
  }

  /** Journalled changes after a revision, in order. */
  changesAfter(revision: number): VectorChange[] {
    return (this.#statements.changesAfter.all(revision) as ChangeRow[]).map((row) => ({
      revision: row.revision,
      label: row.label,
      vector: row.vector === null ? null : floatsOf(row.vector),
    }));
  }

  /** Revision up to which the journal was thrown away, because a graph file holds it. */
  get foldedRevision(): number {
    return Number(this.meta('foldedRevision') ?? 0);
  }

  forgetChangesUpTo(revision: number): void {
    this.db.transaction(() => {
      this.db.prepare('DELETE FROM changes WHERE revision <= ?').run(revision);
      this.setMeta('foldedRevision', String(revision));
    })();
  }

  /** Merges the full-text index and puts everything into the one file, which then opens without write access. */
  optimise(): void {
    this.db.exec(`INSERT INTO passages_fts (passages_fts) VALUES ('optimize')`);
    this.db.pragma('wal_checkpoint(TRUNCATE)');
    this.db.pragma('journal_mode = DELETE');
  }

  /** Closes a connection that wrote, leaving one file where no other connection needs the log. */
  closeCompact(): void {
    try {
      this.db.pragma('journal_mode = DELETE');
    } catch {
      // Another process has the store open: the log stays, and the last one to close takes it in.
    }
    this.db.close();
  }

  close(): void {
    this.db.close();
  }
}

interface ChangeRow {
  readonly revision: number;
  readonly label: number;
  readonly vector: Uint8Array | null;
}

type Statements = ReturnType<typeof prepareStatements>;

function prepareStatements(db: Database) {
  return {
    getMeta: db.prepare('SELECT value FROM meta WHERE key = ?').pluck(),
    setMeta: db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)'),
    labelOf: db.prepare('SELECT label FROM passages WHERE id = ?').pluck(),
    byLabel: db.prepare('SELECT label, id, title, text FROM passages WHERE label = ?'),
    page: db.prepare('SELECT label, id, title, text FROM passages WHERE label >= ? ORDER BY label LIMIT ?'),
    insert: db.prepare('INSERT OR IGNORE INTO passages VALUES (?, ?, ?, ?)'),
    delete: db.prepare('DELETE FROM passages WHERE label = ?'),
    insertText: db.prepare('INSERT INTO passages_fts (rowid, title, text) VALUES (?, ?, ?)'),
    deleteText: db.prepare(
      `INSERT INTO passages_fts (passages_fts, rowid, title, text) VALUES ('delete', ?, ?, ?)`,
    ),
    bm25: db.prepare(
      `SELECT rowid AS label, -rank AS score FROM passages_fts
       WHERE passages_fts MATCH ? AND rank MATCH 'bm25(${TITLE_WEIGHT}.0, 1.0)' ORDER BY rank LIMIT ?`,
    ),
    lastRevision: db.prepare('SELECT max(revision) FROM revisions').pluck(),
    snapshotAt: db.prepare('SELECT snapshot FROM revisions WHERE revision = ?').pluck(),
    setSnapshot: db.prepare('INSERT OR REPLACE INTO revisions VALUES (?, ?)'),
    journal: db.prepare('INSERT OR REPLACE INTO changes VALUES (?, ?, ?)'),
    changesAfter: db.prepare(
      'SELECT revision, label, vector FROM changes WHERE revision > ? ORDER BY revision, label',
    ),
  };
}

function tableCount(db: Database): number {
  return db.prepare('SELECT count(*) FROM sqlite_master').pluck().get() as number;
}

function bytesOf(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
}

function floatsOf(bytes: Uint8Array): Float32Array {
  // The copy also brings the bytes to an address that is a multiple of four.
  return new Float32Array(new Uint8Array(bytes).buffer);
}
