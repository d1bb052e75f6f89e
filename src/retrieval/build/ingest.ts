import { CancelledError, InvalidInputError } from '../../errors.js';
import type { OnProgress } from '../../util/progress.js';
import type { PassageReader, ReaderPosition, ReadPassage } from '../inputs/reader.js';
import type { PassageStore } from '../passages/passage-store.js';

const PASSAGES_PER_TRANSACTION = 500;

export interface IngestOptions {
  /** Count entries that cannot be read and go on, instead of ending with the first. */
  readonly skipBad: boolean;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

/**
 * First stage: all passages into the store. Passages and the place to go on from commit together, so that a
 * killed build neither loses nor repeats one.
 * @throws {InvalidInputError} a bad entry, an id with two contents, or an input without passages
 */
export async function ingest(
  reader: PassageReader,
  store: PassageStore,
  options: IngestOptions,
): Promise<void> {
  if (store.meta('ingested') !== null) return;
  const { skipBad, onProgress, signal } = options;
  const place = store.meta('position');
  let skipped = Number(store.meta('skipped') ?? 0);
  let pending: ReadPassage[] = [];
  const onBad = (error: Error): void => {
    if (!skipBad) throw error;
    skipped++;
  };
  const onLeftOut = (): void => {
    skipped++;
  };
  const flush = (): void => {
    store.db.transaction(() => {
      commit(store, pending, onBad);
      store.setMeta('skipped', String(skipped));
    })();
    const bytes = pending[pending.length - 1]?.bytes ?? reader.totalBytes;
    onProgress?.({
      stage: 'read',
      done: Math.min(bytes, reader.totalBytes),
      total: reader.totalBytes,
      unit: 'bytes',
    });
    pending = [];
  };
  const from = place === null ? null : (JSON.parse(place) as ReaderPosition);
  for await (const read of reader.read({ from, onBad, onLeftOut, signal })) {
    pending.push(read);
    if (pending.length < PASSAGES_PER_TRANSACTION) continue;
    flush();
    if (signal?.aborted) throw new CancelledError();
  }
  flush();
  if (store.count === 0) throw new InvalidInputError(`input ${reader.fingerprint}: holds no passages`);
  store.setMeta('ingested', '1');
}

/** Part of the transaction of its caller. */
function commit(store: PassageStore, pending: readonly ReadPassage[], onBad: (error: Error) => void): void {
  const last = pending[pending.length - 1];
  if (last === undefined) return;
  let label = Number(store.meta('nextLabel') ?? 0);
  let duplicates = Number(store.meta('duplicates') ?? 0);
  for (const { passage, where } of pending) {
    if (store.insert(label, passage)) {
      label++;
      continue;
    }
    const [there] = store.byLabels([store.labelOf(passage.id) as number]);
    if (there?.title === passage.title && there.text === passage.text) duplicates++;
    else
      onBad(
        new InvalidInputError(`${where}: id "${passage.id}" was used before, for a passage of other content`),
      );
  }
  store.setMeta('nextLabel', String(label));
  store.setMeta('count', String(label));
  store.setMeta('duplicates', String(duplicates));
  store.setMeta('position', JSON.stringify(last.position));
}
