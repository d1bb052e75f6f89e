// What the loop leaves in its database, on both kinds: labels that it follows, the ledger that it goes on from, the way from
// records to adapters, and what becomes of all that when people have their answers deleted.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/eventually.js';
import { type PostgresServer, startPostgres } from '../../support/postgres-server.js';
import { post } from '../../support/test-server.js';
import { openLoopHouse, type RunningHouse } from '../support/loop-house.js';
import { importTiny } from '../support/tiny-rl-run.js';

jest.setTimeout(600_000);

const root = mkdtempSync(join(tmpdir(), 'searchloop-databases-'));
const model = join(root, 'model');
let postgres: PostgresServer;
let house: RunningHouse | null = null;
beforeAll(async () => {
  await importTiny(model, join(__dirname, '..', '..', 'fixtures'));
  postgres = await startPostgres();
});
afterEach(async () => {
  await house?.close();
  house = null;
});
afterAll(async () => {
  await postgres?.close();
  rmSync(root, { recursive: true, force: true });
});

async function ask(url: string, text: string, user: string): Promise<string> {
  const response = await post(`${url}/v1/chat/completions`, {
    model: 'searchloop',
    messages: [{ role: 'user', content: text }],
    user,
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { id: string }).id;
}

test.each(['sqlite', 'postgres'] as const)('%s: labels, ledger, lineage, deletion', async (kind) => {
  const home = join(root, kind);
  cpSync(model, home, { recursive: true });
  const flags = kind === 'sqlite' ? {} : { 'store.kind': kind, 'store.url': postgres.url };
  house = await openLoopHouse(home, flags);
  const asked: string[] = [];
  for (const [text, user] of [
    ['What is red?', 'ada'],
    ['What is green?', 'ada'],
    ['What is blue?', 'grace'],
    ['What is white?', 'grace'],
  ] as const) {
    const id = await ask(house.url, text, user);
    asked.push(id);
    const said = await post(`${house.url}/v1/feedback`, { id, golden_answers: ['x'] });
    expect(said.status).toBe(200);
  }
  await house.loop.step();
  expect(house.failures).toEqual([]);
  const first = house.loop.status();
  expect(first).toMatchObject({ step: 1, labels: { answers: 4 } });
  const [entered] = await house.store.adapters();
  expect(entered).toMatchObject({ digest: first.candidate, deletedRecords: 0, receipt: { step: 1 } });
  // Two questions, rolled out four times each.
  expect(entered?.trajectoryIds).toHaveLength(10);
  const rollouts = await house.store.list({ source: 'train' }, { limit: 99, order: 'oldest' });
  expect(rollouts).toHaveLength(8);
  expect(new Set(rollouts.map(({ auditState }) => auditState))).toEqual(new Set(['clean']));
  await house.close();

  house = await openLoopHouse(home, flags);
  await house.loop.step();
  expect(house.failures).toEqual([]);
  const second = house.loop.status();
  expect(second).toMatchObject({ step: 2, labels: { answers: 4 } });
  const adapters = await house.store.adapters();
  expect(adapters.map(({ digest, parentDigest }) => [digest, parentDigest])).toEqual([
    [first.candidate, expect.any(String)],
    [second.candidate, first.candidate],
  ]);

  const used = (user: string, digest: string | null): number =>
    adapters.find((item) => item.digest === digest)?.trajectoryIds.filter((id) => ownerOf.get(id) === user)
      .length ?? 0;
  const heads = await house.store.list({}, { limit: 99, order: 'oldest' });
  const ownerOf = new Map(heads.map(({ id, userKey }) => [id, userKey]));
  const report = await house.store.delete({ userKey: 'ada' });
  expect(new Set(report.trajectories)).toEqual(
    new Set(heads.filter(({ userKey }) => userKey === 'ada').map(({ id }) => id)),
  );
  expect(report.feedback).toBe(2);
  expect(new Set(report.adapters.map(({ digest }) => digest))).toEqual(
    new Set([first.candidate, second.candidate]),
  );
  for (const { digest, records } of report.adapters) expect(records).toBe(used('ada', digest));
  for (const { digest, deletedRecords } of await house.store.adapters())
    expect(deletedRecords).toBe(used('ada', digest));
  expect(await house.store.feedbackOf(asked)).toHaveLength(2);

  // The next step is made of what is left.
  await house.loop.step();
  expect(house.failures).toEqual([]);
  expect(house.loop.status()).toMatchObject({ step: 3 });
  const third = (await house.store.adapters()).find(
    ({ receipt }) => (receipt as { step: number }).step === 3,
  );
  const origins = await house.store.read(third?.trajectoryIds ?? []);
  expect(origins.length).toBeGreaterThan(0);
  expect(new Set(origins.map(({ head }) => head.userKey))).toEqual(new Set(['grace']));

  // Deleted while a step is under way: nothing comes back with its rollouts, and the version that was made is known for it.
  const { store } = house;
  const { putRollout } = store;
  const entering = jest.spyOn(store, 'putRollout').mockImplementationOnce(async (...rollout) => {
    await store.delete({ userKey: 'grace' });
    return putRollout(...rollout);
  });
  await house.loop.step();
  expect(house.failures).toEqual([]);
  expect(house.loop.status()).toMatchObject({ step: 4 });
  expect(await store.list({}, { limit: 99, order: 'oldest' })).toEqual([]);
  const fourth = (await store.adapters()).find(({ receipt }) => (receipt as { step: number }).step === 4);
  const made = new Set(entering.mock.calls.flatMap(([record, , origin]) => [record.id, origin]));
  expect(made.size).toBeGreaterThanOrEqual(5);
  expect(fourth).toMatchObject({ trajectoryIds: [], deletedRecords: made.size });
});

test('a database that is away for a while pauses nothing: the loop says what it waits for, and goes on', async () => {
  const home = join(root, 'away');
  cpSync(model, home, { recursive: true });
  house = await openLoopHouse(home, {
    'store.kind': 'postgres',
    'store.url': postgres.createDatabase('away'),
  });
  const { loop } = house;
  loop.runInBackground();
  await eventually(() => loop.status().waits_for?.startsWith('0 labelled questions') ?? false);
  await postgres.kill();
  await eventually(() => loop.status().waits_for?.startsWith('the store is away') ?? false);
  // Many times as long as three rounds take.
  await sleep(3_000);
  expect(loop.status()).toMatchObject({ state: 'waiting' });
  await postgres.start();
  await eventually(() => loop.status().waits_for?.startsWith('0 labelled questions') ?? false, 60_000);
  expect(loop.status()).toMatchObject({ state: 'waiting', paused_for: null, last_error: null });
  expect(house.failures).toHaveLength(1);
});
