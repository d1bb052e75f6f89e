// The list of published versions and the receipt of one, over a real store.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Receipt } from '../../../src/loop/index.js';
import { listVersions, readReceipt } from '../../../src/loop/index.js';
import { newLoopState, receiptDocument, STATE_DOCUMENT } from '../../../src/loop/online/state.js';
import { openTrajectoryStore, type TrajectoryStore } from '../../../src/trajectory/index.js';
import { newWatch } from '../support/watch.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-receipts-'));
let store: TrajectoryStore;
beforeAll(() => {
  store = openTrajectoryStore({ storage: { kind: 'sqlite', path: join(folder, 'db') }, retry: false });
});
afterAll(async () => {
  await store?.close();
  rmSync(folder, { recursive: true, force: true });
});

const digest = (n: number): string => n.toString(16).padStart(64, '0');

function receipt(n: number, more: Partial<Receipt> = {}): Receipt {
  return {
    version: digest(n),
    parent: n === 1 ? 'base' : digest(n - 1),
    steps: [digest(n + 1000), digest(n)],
    trajectoryIds: [`r${n}`],
    seeds: [n],
    configDigest: 'c',
    indexSnapshotId: null,
    metrics: { loss: 0.5 },
    gate: [{ name: 'probe', passed: true, value: 1, limit: 0, words: 'it changes something' }],
    publishedBy: 'the loop',
    orderedBy: null,
    // Not in the order of the digests.
    publishedAt: 1000 - n,
    ...more,
  };
}

const put = (...receipts: Receipt[]): Promise<void> =>
  store.putDocuments(Object.fromEntries(receipts.map((item) => [receiptDocument(item.version), item])));

test('before any: an empty list, and an error that says so', async () => {
  expect(await listVersions(store)).toEqual({ object: 'list', start: null, live: null, data: [] });
  await expect(readReceipt(store, digest(1))).rejects.toMatchObject({
    code: 'not_found',
    message: `version ${digest(1)} was not published; none was published yet`,
  });
});

test('all that were ever let out, by time: live, on trial, taken back', async () => {
  const rolledBack = { reason: 'worse', by: 'key1', at: 5 };
  await put(receipt(3, { rolledBack }), receipt(2, { orderedBy: 'key1' }), receipt(1));
  const watch = newWatch({ version: digest(1), against: digest(2), share: 0.1 });
  await store.putDocuments({ [STATE_DOCUMENT]: { ...newLoopState(0, 'base'), live: digest(2), watch } });
  const list = await listVersions(store);
  expect(list).toMatchObject({ start: 'base', live: digest(2) });
  const plain = {
    published_by: 'the loop',
    ordered_by: null,
    live: false,
    on_trial: false,
    rolled_back: null,
  };
  const row = (n: number, more: object) => ({
    ...plain,
    version: digest(n),
    parent: n === 1 ? 'base' : digest(n - 1),
    published_at: 1000 - n,
    steps: 2,
    ...more,
  });
  expect(list.data).toEqual([
    row(3, { rolled_back: rolledBack }),
    row(2, { live: true, ordered_by: 'key1' }),
    row(1, { on_trial: true }),
  ]);
  expect(await readReceipt(store, digest(3))).toEqual({
    ...row(3, { rolled_back: rolledBack, steps: [digest(1003), digest(3)] }),
    object: 'loop.receipt',
    trajectory_ids: ['r3'],
    seeds: [3],
    config_digest: 'c',
    index_snapshot_id: null,
    gate: receipt(3).gate,
    metrics: { loss: 0.5 },
  });
});

test('who asks for another one is told which there are, the last ones first', async () => {
  await expect(readReceipt(store, 'base')).rejects.toThrow(
    /what the loop began with.*published were 0+1, 0+2, 0+3$/,
  );
  // Whole digests, nothing else: parts of them and patterns name nothing.
  for (const name of [digest(1).slice(0, 32), '%', '', `${digest(1)}.x`])
    await expect(readReceipt(store, name)).rejects.toMatchObject({ code: 'not_found' });
  await put(...Array.from({ length: 10 }, (_, i) => receipt(i + 4, { publishedAt: 2000 + i })));
  const { message } = (await readReceipt(store, 'other').catch((error: Error) => error as Error)) as Error;
  expect(message).toMatch(/^version other was not published; published were 0+d, .* and 5 before them$/);
  expect(message.match(/0{60}/g)).toHaveLength(8);
});

test('a receipt of an earlier build names nobody who ordered it', async () => {
  const { orderedBy: _nobody, ...older } = receipt(50);
  await store.putDocuments({ [receiptDocument(older.version)]: older });
  expect(await readReceipt(store, older.version)).toMatchObject({ ordered_by: null, rolled_back: null });
});
