// What stands in the way of a publication, and what is lost after one: the loop compares with versions that are there.

import { mkdirSync, mkdtempSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLoop } from '../../../src/cli/loop-start.js';
import { CancelledError } from '../../../src/errors.js';
import { createLogger } from '../../../src/telemetry/index.js';
import { post } from '../../support/test-server.js';
import { openLoopHouse, type RunningHouse, writeGateQuestions } from '../support/loop-house.js';
import { importTiny } from '../support/tiny-rl-run.js';

jest.setTimeout(600_000);

const home = mkdtempSync(join(tmpdir(), 'searchloop-publication-'));
const versions = join(home, 'data', 'loop', 'versions');
let house: RunningHouse;
// Every candidate needs fresh questions to confirm it.
const open = (
  flags: Readonly<Record<string, unknown>> = {},
  more: Parameters<typeof openLoopHouse>[2] = {},
): Promise<RunningHouse> =>
  openLoopHouse(
    home,
    { 'loop.gateData': join(home, 'gate.jsonl'), ...flags },
    { gate: { questions: 12, margin: 0.5, confirmEvery: 1 }, ...more },
  );
beforeAll(async () => {
  await importTiny(home, join(__dirname, '..', '..', 'fixtures'));
  writeGateQuestions(join(home, 'gate.jsonl'), 120);
  house = await open();
  for (const colour of ['red', 'green', 'blue', 'white'])
    await answered(`What is ${colour}?`, { golden_answers: ['a colour'] });
});
afterAll(async () => {
  await house?.close();
  rmSync(home, { recursive: true, force: true });
});

async function answered(question: string, said: object): Promise<void> {
  const body = { model: 'searchloop', messages: [{ role: 'user', content: question }] };
  const { id } = (await (await post(`${house.url}/v1/chat/completions`, body)).json()) as { id: string };
  expect((await post(`${house.url}/v1/feedback`, { id, ...said })).status).toBe(200);
}

async function loopModels(): Promise<string[]> {
  const { data } = (await (await fetch(`${house.url}/v1/models`)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id).filter((id) => id.startsWith('searchloop@loop-'));
}

test('a version that could not be written down is not what the next ones are compared with', async () => {
  writeFileSync(versions, 'in the way');
  await house.loop.step();
  const failed = house.loop.status();
  expect(failed.last_gate?.tests.map(({ name }) => name)).toContain('confirmation');
  expect(failed).toMatchObject({
    state: 'waiting',
    live: 'base',
    stretch: { confirmed: 'base', attempts: 1 },
  });
  expect(house.failures).toEqual([expect.stringContaining('while publishing')]);
  rmSync(versions);
  // Also after a restart the verdict stands: what passed goes live, and no further step is made before.
  await house.close();
  house = await open();
  await house.loop.once();
  const passed = house.loop.status();
  expect(passed.last_error).toBeNull();
  expect(passed.step).toBe(failed.step);
  expect(passed.live).toBe(failed.candidate);
  // Once more as the trainer's policy and the candidate: under those names nobody gets it.
  expect(await loopModels()).toEqual([expect.stringMatching(/^searchloop@loop-[0-9a-f]+$/)]);
  const receipt = await house.store.readDocument(`loop.receipt.${passed.live}`);
  expect(receipt).toMatchObject({ version: passed.live, publishedBy: 'the loop', orderedBy: null });
  expect(passed.stretch).toMatchObject({
    confirmed: passed.live,
    attempts: 0,
    publications: 0,
    questions: 12,
  });
});

test('a setting that is too small for what is live is no damage: the start is refused and nothing forgotten', async () => {
  const { live } = house.loop.status();
  await house.close();
  await expect(open({ 'engine.maxAdapterRank': 2 })).rejects.toThrow('above the limit of 2');
  house = await open();
  expect(house.failures).toEqual([]);
  expect(house.loop.status()).toMatchObject({ live, stretch: { confirmed: live } });
});

test('a second server on the same store with a folder of its own gets no loop, and leaves the state as it is', async () => {
  const { live } = house.loop.status();
  const before = await house.store.readDocument('loop');
  const shared = {
    'store.path': join(home, 'data', 'trajectories.db'),
    'paths.data': join(home, 'elsewhere'),
  };
  await expect(open(shared)).rejects.toThrow('is that of another folder');
  expect(await house.store.readDocument('loop')).toEqual(before);
  await house.loop.pause('to write once more');
  await house.loop.resume();
  expect(house.loop.status()).toMatchObject({ state: 'waiting', live });
});

test('while another process has the folder, users get the version that is live by the store', async () => {
  const { live } = house.loop.status();
  const given = new AbortController();
  const seen: (string | undefined)[] = [];
  const onWait = ({ liveAdapter }: RunningHouse['policy']['engine']): void => {
    seen.push(liveAdapter?.version);
    given.abort();
  };
  await expect(open({}, { onWait, signal: given.signal })).rejects.toThrow(CancelledError);
  expect(seen).toEqual([live]);
});

test('a store that is away at the start: the loop starts when it comes, under the version that was live', async () => {
  const { live } = house.loop.status();
  await house.close();
  const database = join(home, 'data', 'trajectories.db');
  renameSync(database, `${database}.away`);
  mkdirSync(database);
  let isOpen = (): void => {};
  const opens = new Promise<void>((resolve) => {
    isOpen = resolve;
  });
  const started = startLoop({
    open: async () => {
      house = await open();
      return {
        loop: { runInBackground: () => {}, trouble: () => null } as Partial<
          RunningHouse['loop']
        > as RunningHouse['loop'],
        ended: () => null,
        mayReturn: async () => false,
        close: async () => {},
      };
    },
    onOpened: isOpen,
    logger: createLogger({ level: 'silent' }),
    retryMs: 100,
  });
  await started.settled;
  expect(started.trouble()).toMatch(/it has not started: .*cannot be opened/);
  rmdirSync(database);
  renameSync(`${database}.away`, database);
  await opens;
  expect(started.trouble()).toBeNull();
  expect(house.loop.status().live).toBe(live);
  expect(house.policy.engine.liveAdapter?.version).toBe(live);
  await started.close();
});

test('after a start without the version that was confirmed last, the live one takes its place', async () => {
  const { live } = house.loop.status();
  await house.close();
  writeFileSync(join(versions, live, 'adapter_model.safetensors'), 'damaged');
  house = await open();
  expect(house.loop.status()).toMatchObject({ live: 'base', stretch: { confirmed: 'base' } });
  await house.loop.step();
  const again = house.loop.status();
  expect(again.last_error).toBeNull();
  expect(again.live).toBe(again.candidate);
});

test('versions that come faster than labels go back together, to the one before them all', async () => {
  await house.close();
  house = await open({ 'loop.watchMinPairs': 8, 'loop.watchMaxPairs': 40 });
  await house.loop.rollback('begin anew');
  expect(house.loop.status().live).toBe('base');
  for (let i = 0; i < 20; i++) await answered(`What was number ${i}?`, { reward: 1 });
  const made: string[] = [];
  for (let i = 0; i < 3; i++) {
    await house.loop.step();
    made.push(house.loop.status().live);
    for (let n = 0; n < 5; n++) await answered(`What was number ${20 + 5 * i + n}?`, { reward: 0 });
  }
  expect(new Set(['base', ...made]).size).toBe(4);
  expect(house.loop.status().watch).toMatchObject({ against: 'base', earlier: made.slice(0, 2) });
  // The step that follows begins with what was said.
  await house.loop.step();
  expect(house.loop.status().counts.rolled_back).toBe(2);
  for (const version of made)
    expect(await house.store.readDocument(`loop.receipt.${version}`)).toMatchObject({
      rolledBack: { reason: expect.stringContaining('users say that it is worse: over 15 pairs') },
    });
  expect(made).not.toContain((await house.store.adapters()).at(-1)?.parentDigest);
});
