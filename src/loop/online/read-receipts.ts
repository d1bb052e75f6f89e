// The versions that were published, and the receipt of each: what `GET /admin/loop/versions` and `searchloop loop receipt` show.

import { NotFoundError } from '../../errors.js';
import type { TrajectoryStore } from '../../trajectory/index.js';
import type { Receipt } from './receipt.js';
import { type LoopState, RECEIPTS, readLoopState, receiptDocument } from './state.js';

type Documents = Pick<TrajectoryStore, 'readDocument' | 'readDocumentsUnder'>;
export type VersionList = Awaited<ReturnType<typeof listVersions>>;
export type VersionReceipt = Awaited<ReturnType<typeof readReceipt>>;

/** Versions that an error names; the whole list is a request away. */
const MOST_NAMED = 8;

/** All that were ever let out, oldest first, also those that were taken back. The start has no receipt: nobody published it. */
export async function listVersions(store: Documents) {
  const [state, receipts] = await Promise.all([readLoopState(store), allReceipts(store)]);
  return {
    object: 'list',
    start: state?.start ?? null,
    live: state?.live ?? null,
    data: receipts.map((receipt) => ({ ...headOf(receipt, state), steps: receipt.steps.length })),
  } as const;
}

/** @throws {NotFoundError} it was never published; says which were */
export async function readReceipt(store: Documents, version: string) {
  const [state, found] = await Promise.all([
    readLoopState(store),
    store.readDocument(receiptDocument(version)),
  ]);
  if (found === null) throw new NotFoundError(await unknownVersion(store, state, version));
  const receipt = found as Receipt;
  return {
    object: 'loop.receipt',
    ...headOf(receipt, state),
    steps: receipt.steps,
    trajectory_ids: receipt.trajectoryIds,
    seeds: receipt.seeds,
    config_digest: receipt.configDigest,
    index_snapshot_id: receipt.indexSnapshotId,
    gate: receipt.gate,
    metrics: receipt.metrics,
  } as const;
}

/** What the list and a receipt say alike. Receipts of earlier builds do not name who ordered the step. */
function headOf({ version, parent, rolledBack, ...receipt }: Receipt, state: LoopState | null) {
  return {
    version,
    parent,
    published_at: receipt.publishedAt,
    published_by: receipt.publishedBy,
    ordered_by: receipt.orderedBy ?? null,
    live: version === state?.live,
    on_trial: state?.watch?.version === version && state.watch.share < 1,
    rolled_back: rolledBack ?? null,
  };
}

async function allReceipts(store: Documents): Promise<Receipt[]> {
  const receipts = Object.values(await store.readDocumentsUnder(RECEIPTS)) as Receipt[];
  return receipts.sort((a, b) => a.publishedAt - b.publishedAt);
}

async function unknownVersion(store: Documents, state: LoopState | null, version: string): Promise<string> {
  const known = (await allReceipts(store)).map((receipt) => receipt.version).reverse();
  const others = known.length > MOST_NAMED ? ` and ${known.length - MOST_NAMED} before them` : '';
  const published =
    known.length === 0
      ? 'none was published yet'
      : `published were ${known.slice(0, MOST_NAMED).join(', ')}${others}`;
  return version === state?.start
    ? `version ${version} is what the loop began with, and has no receipt; ${published}`
    : `version ${version} was not published; ${published}`;
}
