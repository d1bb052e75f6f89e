// A new version on trial: a share of the requests, feedback, and then it goes live or goes.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.js';
import { post } from '../../support/test-server.js';
import { openLoopHouse, type RunningHouse, writeGateQuestions } from '../support/loop-house.js';
import { importTiny } from '../support/tiny-rl-run.js';

jest.setTimeout(600_000);

const home = mkdtempSync(join(tmpdir(), 'searchloop-canary-'));
let house: RunningHouse;
const open = (gate: { maxKl?: number; margin?: number } = {}): Promise<RunningHouse> =>
  openLoopHouse(
    home,
    {
      'loop.gateData': join(home, 'gate.jsonl'),
      'loop.canaryShare': 0.5,
      'loop.watchMinPairs': 5,
      'loop.watchMaxPairs': 12,
    },
    // The gate is not what is tried here: few questions, and a margin that these can rule out.
    { gate: { questions: 40, margin: 0.2, ...gate } },
  );
beforeAll(async () => {
  await importTiny(home, join(__dirname, '..', '..', 'fixtures'));
  writeGateQuestions(join(home, 'gate.jsonl'), 40);
  house = await open();
});
afterAll(async () => {
  await house?.close();
  rmSync(home, { recursive: true, force: true });
});

interface Answer {
  readonly id: string;
  readonly version: string;
}

async function ask(text: string): Promise<Answer> {
  const response = await post(`${house.url}/v1/chat/completions`, {
    model: 'searchloop',
    messages: [{ role: 'user', content: text }],
  });
  expect(response.status).toBe(200);
  const { id, usage } = (await response.json()) as {
    id: string;
    usage: { searchloop: { model_version: string } };
  };
  expect(response.headers.get('x-searchloop-version')).toBe(usage.searchloop.model_version);
  return { id, version: usage.searchloop.model_version };
}

async function say(id: string, fields: object): Promise<void> {
  expect((await post(`${house.url}/v1/feedback`, { id, ...fields })).status).toBe(200);
}

/** Asks until each of two versions has given so many answers, and says of each what it was worth. */
async function judged(count: number, worth: (version: string) => number): Promise<Record<string, number>> {
  const seen: Record<string, number> = {};
  const isEnough = (): boolean => {
    const counts = Object.values(seen);
    return counts.length === 2 && counts.every((given) => given >= count);
  };
  for (let i = 0; i < 400 && !isEnough(); i++) {
    const { id, version } = await ask(`What is number ${1000 + i}?`);
    seen[version] = (seen[version] ?? 0) + 1;
    await say(id, { reward: worth(version) });
  }
  expect(isEnough()).toBe(true);
  return seen;
}

const PATIENCE_MS = 200_000;

/** Asks and says that a version is worse than all others, until that has an end. */
async function complain(worse: string, isOver: () => boolean): Promise<void> {
  for (let i = 0; i < 100 && !isOver(); i++) {
    const { id, version } = await ask(`What is number ${2000 + i}?`);
    await say(id, { reward: version === worse ? 0 : 1 });
  }
  await eventually(isOver, PATIENCE_MS);
}

let first: string;

test('a version that users find as good goes live after its trial', async () => {
  for (const colour of ['red', 'green', 'blue', 'white'])
    await say((await ask(`What is ${colour}?`)).id, { golden_answers: ['a colour'] });
  await house.loop.step();
  const { watch, live, counts } = house.loop.status();
  expect(house.failures).toEqual([]);
  expect({ live, counts }).toMatchObject({ live: 'base', counts: { published: 0 } });
  expect(watch).toMatchObject({ against: 'base', share: 0.5, pairs: 0 });
  first = watch?.version ?? '';
  expect(Object.keys(await judged(12, () => 0.5)).sort()).toEqual([first, 'base'].sort());
  // The round that hears the last of it goes on to the next candidate.
  await house.loop.once();
  expect(house.loop.status()).toMatchObject({ live: first, counts: { published: 1 } });
  expect(house.notes.join('\n')).toContain(`version ${first.slice(0, 12)} is kept`);
});

test('one that users find worse is taken back, and training with it', async () => {
  while (house.loop.status().watch === null) await house.loop.step();
  const trial = house.loop.status().watch?.version ?? '';
  expect(trial).not.toBe(first);
  await judged(12, (version) => (version === trial ? 0 : 1));
  await house.loop.once();
  expect(house.failures).toEqual([]);
  expect(house.loop.status()).toMatchObject({ live: first, counts: { published: 1, rolled_back: 1 } });
  expect(house.notes.join('\n')).toContain(`rolled_back: ${trial.slice(0, 12)}`);
  expect(house.loop.status().watch?.version).not.toBe(trial);
  // What comes next is trained from the version before, not from the one that failed.
  while ((await house.store.adapters()).at(-1)?.digest === trial) await house.loop.step();
  expect((await house.store.adapters()).at(-1)?.parentDigest).toBe(first);
  for (let i = 0; i < 5; i++) expect((await ask('What is red?')).version).not.toBe(trial);
});

test('training goes on during a trial; what then breaks a limit goes back to what was tried, not to itself', async () => {
  while (house.loop.status().watch === null) await house.loop.step();
  const trial = house.loop.status().watch?.version ?? '';
  await house.close();
  // From now on any distance from the start is too far.
  house = await open({ maxKl: 0 });
  for (let steps = 0; steps < 2; steps++) await house.loop.step();
  const ahead = house.loop.status();
  expect(ahead).toMatchObject({ counts: { refused: 0 }, watch: { version: trial } });
  expect(ahead.candidate).not.toBe(trial);
  await judged(12, () => 0.5);
  // The round that hears the last of it judges the candidate that was made meanwhile.
  await house.loop.once();
  expect(house.failures).toEqual([]);
  const after = house.loop.status();
  expect(after.last_gate?.tests.find(({ name }) => name === 'kl')?.passed).toBe(false);
  expect(after).toMatchObject({ live: trial, candidate: trial, counts: { refused: 1 } });
  expect(house.notes.join('\n')).toContain(`refused: ${ahead.candidate?.slice(0, 12)}`);
});

test('users who leave no pause do not keep a bad version on trial, nor does a pause of the loop', async () => {
  await house.close();
  // Of the error there is little left on the same questions.
  house = await open({ margin: 0.5 });
  const rolledBack = (): number => house.loop.status().counts.rolled_back;
  while (house.loop.status().watch === null) await house.loop.step();
  const trial = house.loop.status().watch?.version ?? '';
  const { step } = house.loop.status();
  const user = await house.priority.users.open({ maxLength: 8 });
  house.loop.runInBackground();
  await eventually(() => house.loop.status().state === 'rolling', PATIENCE_MS);
  await complain(trial, () => rolledBack() === 2);
  expect(house.loop.status()).toMatchObject({ step, live: house.loop.status().candidate });
  user.close();

  await eventually(() => house.loop.status().watch !== null, PATIENCE_MS);
  const next = house.loop.status().watch?.version ?? '';
  await complain(next, () => (house.loop.status().watch?.pairs ?? 0) > 0);
  const state = async (): Promise<string> => JSON.stringify(await house.store.readDocument('loop'));
  await eventually(async () => (await state()).includes('anonymous'), PATIENCE_MS);
  await house.loop.pause('enough');
  expect(house.loop.status().watch?.version).toBe(next);
  // What was deleted is neither in the verdict to come nor on the disk, however long the pause.
  await house.store.deleteFeedback({ keyId: 'anonymous' });
  await eventually(async () => !(await state()).includes('anonymous'), PATIENCE_MS);
  expect(house.loop.status()).toMatchObject({ state: 'paused', watch: { version: next, pairs: 0 } });
  await complain(next, () => rolledBack() === 3);
  expect(house.loop.status()).toMatchObject({ state: 'paused', watch: null });
  for (let i = 0; i < 5; i++) expect((await ask('What is red?')).version).not.toBe(next);
  expect(house.failures).toEqual([]);
});
