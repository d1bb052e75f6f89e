// The loop over the tiny model without a gate set: what a step leaves in the store, what happens where it breaks off, and
// learning from explored answers.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UnavailableError } from '../../../src/errors.js';
import { post } from '../../support/test-server.js';
import { openLoopHouse, type RunningHouse } from '../support/loop-house.js';
import { importTiny } from '../support/tiny-rl-run.js';

jest.setTimeout(600_000);

const root = mkdtempSync(join(tmpdir(), 'searchloop-online-'));
const model = join(root, 'model');
let house: RunningHouse;
beforeAll(() => importTiny(model, join(__dirname, '..', '..', 'fixtures')));
afterEach(() => house?.close());
afterAll(() => rmSync(root, { recursive: true, force: true }));

function homeOf(name: string): string {
  const home = join(root, name);
  cpSync(model, home, { recursive: true });
  return home;
}

async function ask(text: string, fields: object = {}): Promise<string> {
  const response = await post(`${house.url}/v1/chat/completions`, {
    model: 'searchloop',
    messages: [{ role: 'user', content: text }],
    ...fields,
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { id: string }).id;
}
const say = async (id: string, fields: object): Promise<void> => {
  const response = await post(`${house.url}/v1/feedback`, { id, ...fields });
  expect(response.status).toBe(200);
};

const COLOURS = ['red', 'green', 'blue', 'white', 'black', 'grey'];

test('steps go on from the ledger: after a restart, and where a checkpoint was written but never entered', async () => {
  const home = homeOf('replay');
  house = await openLoopHouse(home);
  expect(house.loop.status()).toMatchObject({ state: 'waiting', step: 0 });
  await house.loop.once();
  expect(house.loop.status().waits_for).toContain('0 labelled questions may be trained on; a step needs 2');
  for (const colour of COLOURS) await say(await ask(`What is ${colour}?`), { golden_answers: ['x'] });
  await house.loop.step();
  expect(house.failures).toEqual([]);
  const first = house.loop.status();
  expect(first.last_error).toBeNull();
  expect(first).toMatchObject({ step: 1, live: 'base', last_gate: { verdict: 'waits' } });
  expect(first.waits_for).toContain('the gate has 0 questions and needs 300');
  await house.close();

  house = await openLoopHouse(home);
  // As a kill between the checkpoint's rename and the store's commit would leave it.
  const commit = jest.spyOn(house.store, 'commitStep');
  commit.mockRejectedValueOnce(new UnavailableError('the disk is gone'));
  await house.loop.step();
  expect(house.failures).toEqual([expect.stringContaining('the disk is gone')]);
  expect(house.loop.status()).toMatchObject({
    step: 1,
    state: 'waiting',
    candidate: first.candidate,
    last_error: 'the disk is gone',
  });
  commit.mockRestore();
  await house.loop.step();
  const second = house.loop.status();
  expect(second).toMatchObject({ step: 2, last_error: null });
  const adapters = await house.store.adapters();
  expect(adapters.map(({ digest, parentDigest }) => [digest, parentDigest])).toEqual([
    [first.candidate, expect.any(String)],
    [second.candidate, first.candidate],
  ]);
  expect(adapters[1]?.receipt).toMatchObject({
    kind: 'loop-step',
    step: 2,
    trainerStep: 2,
    seed: 0,
    state: expect.stringMatching(/^[0-9a-f]{64}$/),
    configDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
    checkpoint: 'step-00000002',
  });
});

test('a pause comes before rounds that were asked for earlier and have not begun', async () => {
  house = await openLoopHouse(homeOf('orders'));
  const asked: string[] = [];
  for (const colour of COLOURS) asked.push(await ask(`What is ${colour}?`));
  for (const id of asked) await say(id, { golden_answers: ['x'] });
  const [, , paused] = await Promise.all([house.loop.step(), house.loop.step(), house.loop.pause('enough')]);
  expect(paused).toMatchObject({ state: 'paused', paused_for: 'enough', step: 0 });
  await house.loop.resume();
  await house.loop.step();
  expect(house.loop.status()).toMatchObject({ step: 1, last_error: null });
  // Nothing is learned, and what people have deleted is forgotten all the same.
  await house.loop.pause('enough');
  expect(house.loop.status().labels.answers).toBe(6);
  house.loop.runInBackground();
  await house.store.delete({ ids: asked.slice(0, 1) });
  while (house.loop.status().labels.answers > 5) await sleep(20);
  expect(house.loop.status().state).toBe('paused');
});

test('a broken number rejects the step; three in a row pause the loop until somebody resumes it', async () => {
  house = await openLoopHouse(homeOf('broken'), { 'training.learningRate': 1e30 });
  for (const colour of COLOURS) await say(await ask(`What is ${colour}?`), { golden_answers: ['x'] });
  for (let tries = 0; tries < 6 && house.loop.status().state !== 'paused'; tries++)
    await house.loop.step().catch(() => {});
  const status = house.loop.status();
  expect(status.state).toBe('paused');
  expect(status.paused_for).toMatch(/in a row|collapse/);
  expect(status.live).toBe('base');
  // Questions are answered as before.
  await ask('What is red?');
});

test('logged mode learns from explored answers alone, once each, and counts the others by reason', async () => {
  house = await openLoopHouse(homeOf('logged'), {
    'loop.mode': 'logged',
    'loop.exploreShare': 1,
    'loop.minQuestions': 4,
  });
  const explored = [];
  // An answer that the environment began is not the policy's: nothing would be learned from it.
  const unforced = { searchloop: { force_answer: false } };
  for (const colour of COLOURS) explored.push(await ask(`What is ${colour}?`, unforced));
  const heads = await house.store.list({ ids: explored }, { limit: 9, order: 'oldest' });
  expect(heads.map(({ source, temperature }) => [source, temperature])).toEqual(
    COLOURS.map(() => ['explore', 1]),
  );
  const greedy = await ask('What is pink?', { temperature: 0 });
  for (const [i, id] of explored.entries()) await say(id, { reward: i % 2 });
  await say(greedy, { reward: 1 });
  await house.loop.step();
  expect(house.failures).toEqual([]);
  const status = house.loop.status();
  expect(status.step).toBe(1);
  const [adapter] = await house.store.adapters();
  expect(adapter?.trajectoryIds).not.toContain(greedy);
  const used = adapter?.trajectoryIds.length ?? 0;
  expect(used).toBeGreaterThanOrEqual(3);
  const { logged_unusable: unusable, logged_usable: usable } = status.labels;
  expect(unusable['not explored (temperature 0 or cut sampling)']).toBe(1);
  expect(unusable['trained on before']).toBe(used);
  expect(usable + Object.values(unusable).reduce((sum, count) => sum + (count ?? 0), 0)).toBe(7);
});

test('answers that proved too far from the candidate are read once for it, counted, and named as what is missing', async () => {
  house = await openLoopHouse(homeOf('far'), {
    'loop.mode': 'logged',
    'loop.exploreShare': 1,
    'training.learningRate': 0.1,
  });
  const explored = [];
  for (const colour of COLOURS)
    explored.push(await ask(`What is ${colour}?`, { searchloop: { force_answer: false } }));
  const [first, second, ...others] = explored as [string, string, ...string[]];
  for (const [i, id] of [first, second].entries()) await say(id, { reward: i });
  await house.loop.once();
  expect(house.loop.status()).toMatchObject({ step: 1, last_error: null });
  for (const id of others) await say(id, { reward: 1 });
  const read = jest.spyOn(house.store, 'read');
  expect(await house.loop.once()).toBe(false);
  const { waits_for, labels } = house.loop.status();
  expect(waits_for).toContain('no rollout of the step could be used');
  expect(labels.logged_unusable['too far from the present policy']).toBe(others.length);
  expect(labels.logged_usable).toBe(0);
  read.mockClear();
  expect(await house.loop.once()).toBe(false);
  expect(read).not.toHaveBeenCalled();
  expect(house.loop.status().waits_for).toBe(
    '0 labelled explored answers may be trained on; a step needs 2 (others may not: 2 trained on before, 4 too far from the present policy)',
  );
});

test('a pair that somebody compared becomes a group of its own, where both answers were sampled', async () => {
  house = await openLoopHouse(homeOf('pairs'), { 'loop.minQuestions': 1 });
  const sampled = { temperature: 1, n: 2, searchloop: { force_answer: false } };
  // As many as a step takes; only reading them shows that nothing can be learned from them.
  for (const colour of ['white', 'black']) {
    const cut = await ask(`What is ${colour}?`, { ...sampled, top_p: 0.9 });
    await say(`${cut}-1`, { preferred_over: `${cut}-0` });
  }
  const id = await ask('What is red?', sampled);
  const greedy = [await ask('What is blue?'), await ask('What is blue?')] as const;
  await say(`${id}-1`, { preferred_over: `${id}-0` });
  await say(greedy[0], { preferred_over: greedy[1] });
  await house.loop.step();
  expect(house.failures).toEqual([]);
  expect(house.loop.status()).toMatchObject({ step: 1, labels: { pairs: 0 } });
  const [adapter] = await house.store.adapters();
  expect([...(adapter?.trajectoryIds ?? [])].sort()).toEqual([`${id}-0`, `${id}-1`]);
  const heads = await house.store.list({ ids: [`${id}-0`, `${id}-1`] }, { limit: 2, order: 'oldest' });
  expect(new Map(heads.map(({ id, grade }) => [id.slice(-1), [grade?.value, grade?.rule]]))).toEqual(
    new Map([
      ['0', [0, 'preferred_over']],
      ['1', [1, 'preferred_over']],
    ]),
  );
});
