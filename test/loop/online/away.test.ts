// What is away: the loop waits for it, however long. Neither orders nor the end of the server wait for a store.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EngineAwayError } from '../../../src/engine/index.js';
import { OverloadedError, UnavailableError } from '../../../src/errors.js';
import { SearchOutages } from '../../../src/loop/online/search-outages.js';
import { ScorerAwayError } from '../../../src/reward/index.js';
import { SearchesAwayError } from '../../../src/rollout/index.js';
import { eventually } from '../../support/eventually.js';
import { post } from '../../support/test-server.js';
import { byLowIds, openLoopHouse, type RunningHouse } from '../support/loop-house.js';
import { importTiny } from '../support/tiny-rl-run.js';

jest.setTimeout(600_000);

const home = mkdtempSync(join(tmpdir(), 'searchloop-store-away-'));
let house: RunningHouse;
/** What a round ends with: the tiny model never searches, and no judge is set. */
let outage: Error | null = null;
beforeAll(async () => {
  await importTiny(home, join(__dirname, '..', '..', 'fixtures'));
  house = await openLoopHouse(
    home,
    // Else training would wait for the gate's questions after four steps.
    { 'loop.gateEvery': 100 },
    { grade: (answers, signal) => (outage === null ? byLowIds(answers, signal) : Promise.reject(outage)) },
  );
  for (const colour of ['red', 'green', 'blue', 'white']) {
    const body = { model: 'searchloop', messages: [{ role: 'user', content: `What is ${colour}?` }] };
    const { id } = (await (await post(`${house.url}/v1/chat/completions`, body)).json()) as { id: string };
    expect((await post(`${house.url}/v1/feedback`, { id, golden_answers: ['x'] })).status).toBe(200);
  }
});
afterEach(() => jest.restoreAllMocks());
afterAll(async () => {
  await house?.close();
  rmSync(home, { recursive: true, force: true });
});

const health = (trouble: string | null) => ({ trouble, waiting: 0, waitingBytes: 0, refused: 0 });

test('a store is no failure: rounds and looks without number wait, it is told once, and then the work goes on', async () => {
  const read = jest
    .spyOn(house.store, 'feedbackSince')
    .mockRejectedValue(new UnavailableError('no connection to the database'));
  for (let rounds = 0; rounds < 6; rounds++) await house.loop.once();
  expect(house.loop.status()).toMatchObject({
    state: 'waiting',
    waits_for: 'the store is away: no connection to the database',
  });
  expect(house.failures).toEqual(['the loop while waiting: no connection to the database']);
  read.mockRestore();
  await house.loop.step();
  expect(house.loop.status()).toMatchObject({ state: 'waiting', step: 1, last_error: null });
  house.failures.length = 0;
});

test.each([
  ['searches', new SearchesAwayError('no answer'), 'searches fail: no answer'],
  ['the engine', new EngineAwayError('no answer'), 'the engine is away: no answer'],
  ['the users', new OverloadedError('no answer', 1), 'the engine is full: no answer'],
  ['a judge', new ScorerAwayError('no answer'), 'who tells what answers are worth is away: no answer'],
])('%s: more rounds than three wait, and the work goes on by itself', async (_what, error, waitsFor) => {
  const { step } = house.loop.status();
  outage = error;
  const began = Date.now();
  await house.loop.once();
  const firstAway = Date.now();
  for (let rounds = 0; rounds < 4; rounds++) await house.loop.once();
  const waiting = house.loop.status();
  expect(waiting).toMatchObject({ state: 'waiting', step, waits_for: waitsFor });
  expect(waiting.waits_since).toBeGreaterThanOrEqual(began);
  expect(waiting.waits_since).toBeLessThanOrEqual(firstAway);
  expect(house.failures).toEqual(['the loop while rolling: no answer']);
  outage = null;
  await house.loop.once();
  expect(house.loop.status()).toMatchObject({ state: 'waiting', step: step + 1, last_error: null });
  expect(house.loop.status().waits_for).not.toBe(waitsFor);
  house.failures.length = 0;
});

test('while a round still waits for searches the status says so, and since when; not where the loop is paused', async () => {
  const since = Date.now() - 5000;
  jest.spyOn(SearchOutages.prototype, 'waitsFor', 'get').mockReturnValue('searches fail: no answer');
  jest.spyOn(SearchOutages.prototype, 'since', 'get').mockReturnValue(since);
  const shown = await (await fetch(`${house.url}/admin/loop`)).json();
  expect(shown).toMatchObject({ waits_for: 'searches fail: no answer', waits_since: since });
  await house.loop.pause('enough');
  expect(house.loop.status().waits_for).not.toBe('searches fail: no answer');
  await house.loop.resume();
});

test('a store that takes no writes: orders say so, and the loop closes all the same', async () => {
  const write = jest.spyOn(house.store, 'putDocuments').mockReturnValue(new Promise(() => {}));
  jest.spyOn(house.store, 'health').mockReturnValue(health('the disk is full'));
  house.loop.runInBackground();
  await eventually(() => write.mock.calls.length > 0);
  const refused = await post(`${house.url}/admin/loop/pause`, {});
  expect(refused.status).toBe(503);
  expect(await refused.text()).toContain('the disk is full');
  const began = performance.now();
  await house.loop.close();
  expect(performance.now() - began).toBeLessThan(15_000);
  expect(house.failures).toEqual([]);
});
