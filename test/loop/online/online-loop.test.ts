// The loop over the tiny model without a gate set: what a step leaves in the store, what happens where it breaks off, and
// learning from explored answers.

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { IntegrityError, UnavailableError } from '../../../src/errors.js';
import { gateSlices, isHeldOut, questionKey } from '../../../src/loop/online/gate/questions.js';
import { createGrader } from '../../../src/loop/online/rewards.js';
import { createJudge } from '../../../src/reward/index.js';
import { post } from '../../support/test-server.js';
import { feedback, makeRecord, notes, tokenizer } from '../../trajectory/store/support.js';
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

/** What the first step wrote down of rewards to be expected. */
const baselinesOf = (name: string) =>
  JSON.parse(
    readFileSync(join(root, name, 'data', 'loop', 'checkpoints', 'step-00000001', 'state.json'), 'utf8'),
  ).carried.baselines;

const COLOURS = ['red', 'green', 'blue', 'white', 'black', 'grey'];

test('steps go on from the ledger: after a restart, and where a checkpoint was written but never entered', async () => {
  const home = homeOf('replay');
  // The weight of the KL follows a target: each step goes on with that of the step before.
  const flags = { 'training.klTarget': 1000, 'training.klHorizon': 8, 'training.klBeta': 0.001 };
  house = await openLoopHouse(home, flags);
  expect(house.loop.status()).toMatchObject({ state: 'waiting', step: 0, steps_to_gate: 1 });
  await house.loop.once();
  expect(house.loop.status().waits_for).toContain('0 labelled questions may be trained on; a step needs 2');
  for (const colour of COLOURS) await say(await ask(`What is ${colour}?`), { golden_answers: ['x'] });
  await house.loop.step();
  expect(house.failures).toEqual([]);
  const first = house.loop.status();
  expect(first.last_error).toBeNull();
  expect(first).toMatchObject({ step: 1, steps_to_gate: 0, live: 'base', last_gate: { verdict: 'waits' } });
  expect(first.waits_for).toContain('the gate has 0 questions and needs 300');
  // The trainer's policy is in the engine by now.
  const models = await fetch(`${house.url}/v1/models`);
  expect(await models.text()).not.toContain('loop-');
  await house.close();

  house = await openLoopHouse(home, flags);
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
    // Rollouts of its own: no stored answer was used up.
    asGiven: [],
  });
  // Rolled out as users are answered: the preset's own sizes would act twice.
  const learned = await house.store.read(adapters.flatMap(({ trajectoryIds }) => trajectoryIds));
  expect(learned.length).toBeGreaterThan(16);
  for (const { record } of learned) expect(record.sampling.actionBudget).toBe(1);
  const weights = adapters.map(
    ({ receipt }) => (receipt as { metrics: { klBeta: number } }).metrics.klBeta / 0.001,
  );
  expect(weights[0]).toBeCloseTo(1, 9);
  expect(weights[1]).toBeCloseTo(1 - (0.2 * 8) / 8, 9);
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
  house = await openLoopHouse(homeOf('broken'), { 'training.learningRate': 1e39 });
  for (const colour of COLOURS) await say(await ask(`What is ${colour}?`), { golden_answers: ['x'] });
  // Of a loop that is paused no step may be asked.
  for (let tries = 0; tries < 3; tries++) await house.loop.step();
  expect(house.loop.status()).toMatchObject({
    state: 'paused',
    paused_for: expect.stringMatching(/^a step was rejected 3 times in a row, the last time: .*not finite/),
    live: 'base',
    step: 0,
    candidate: null,
  });
  expect(house.failures).toHaveLength(3);
  // Questions are answered as before.
  await ask('What is red?');
  expect((await house.loop.resume()).state).toBe('waiting');
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
  // They are of the version before the trainer's first, which says nothing against them.
  expect(adapter?.receipt).toMatchObject({ metrics: { rollouts: used, staleRollouts: 0 } });
  expect(Object.keys(baselinesOf('logged').clusters)).toEqual(['what']);
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
  // Which of two is better says nothing of what a question is worth.
  expect(baselinesOf('pairs')).toMatchObject({ overall: null, clusters: {} });
  const heads = await house.store.list({ ids: [`${id}-0`, `${id}-1`] }, { limit: 2, order: 'oldest' });
  expect(new Map(heads.map(({ id, grade }) => [id.slice(-1), [grade?.value, grade?.rule]]))).toEqual(
    new Map([
      ['0', [0, 'preferred_over']],
      ['1', [1, 'preferred_over']],
    ]),
  );
});

const isTaught = (question: string): boolean => !isHeldOut(questionKey(question));

test('a judge that refuses one of four questions: the step is made of the other three', async () => {
  const [refused = '', ...others] = COLOURS.map((colour) => `What is ${colour}?`)
    .filter(isTaught)
    .slice(0, 4);
  let asked = 0;
  const server = createServer((req, res) => {
    let text = '';
    req.on('data', (chunk) => {
      text += chunk;
    });
    req.on('end', () => {
      const isRefused = text.includes(refused);
      const content = `{"score": ${asked++ % 2}}`;
      res.writeHead(isRefused ? 400 : 200, { 'content-type': 'application/json' });
      res.end(isRefused ? 'content policy' : JSON.stringify({ choices: [{ message: { content } }] }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const told: string[] = [];
  const judge = createJudge({ baseUrl: url, model: 'wise', onNote: (line) => told.push(line) });
  house = await openLoopHouse(
    homeOf('judged'),
    { 'reward.judgeUrl': url, 'training.batchSequences': 16, 'loop.minQuestions': 4, 'loop.keyShare': 1 },
    {
      grade: createGrader({
        tokenizer,
        settings: { rule: 'outcome', formatWeight: 0, searchCost: 0 },
        scorer: null,
        majority: false,
        // The tiny model never answers, and what is no answer is not judged.
        judge: {
          ...judge,
          score: (items, signal) =>
            judge.score(
              items.map((item) => ({ ...item, answer: 'x' })),
              signal,
            ),
        },
      }),
    },
  );
  const ids = new Map<string, string>();
  for (const question of [refused, ...others]) ids.set(question, await ask(question));
  await house.loop.step();
  server.close();
  expect(house.failures).toEqual([]);
  expect(house.loop.status()).toMatchObject({ step: 1, last_error: null });
  expect(told).toEqual([
    expect.stringMatching(/would not judge 4 of 16 answers.*answered 400: content policy/),
  ]);
  const [adapter] = await house.store.adapters();
  const origins = (adapter?.trajectoryIds ?? []).filter((id) => !id.startsWith('loop-'));
  expect(origins.sort()).toEqual(others.map((question) => ids.get(question)).sort());
});

test('a labelled question that does not fit the window is left out, by steps and by the gate, and counted', async () => {
  const home = homeOf('window');
  const gateData = join(home, 'gate.jsonl');
  const short = ['What is one?', 'What is two?', 'What is three?', 'What is four?'];
  const long = Array.from({ length: 99 }, (_, i) => `What of ${'a long story '.repeat(200)} ${i}?`);
  const poolOf = (questions: readonly string[]) =>
    questions.map((question) => ({ key: questionKey(question), messages: [], goldenAnswers: [] }));
  // One that the gate would ask before it asks all the others.
  const judging = long.find((question) =>
    gateSlices(poolOf([...short, question]), new Set(), new Set(), 4).working.some(
      ({ key }) => key === questionKey(question),
    ),
  );
  const lines = [...short, judging].map((question, i) =>
    JSON.stringify({ id: `${i}`, question, golden_answers: ['x'] }),
  );
  writeFileSync(gateData, `${lines.join('\n')}\n`);
  house = await openLoopHouse(
    home,
    { 'loop.gateData': gateData, 'loop.minQuestions': 3, 'training.batchSequences': 16 },
    { gate: { questions: 4, margin: 0.2 } },
  );
  const question = long.filter((text) => text !== judging).find(isTaught) as string;
  await house.store.put(
    makeRecord('long', { question }),
    notes({ messages: [{ role: 'user', content: question }] }),
  );
  await house.store.addFeedback(feedback('long', { goldAnswers: ['x'], role: 'admin' }));
  for (const colour of COLOURS) await say(await ask(`What is ${colour}?`), { golden_answers: ['x'] });
  // A user asks what the gate asks, too: it is not trained on for that.
  const shared = short.find(isTaught) as string;
  await say(await ask(shared), { golden_answers: ['x'] });
  for (let step = 0; step < 3; step++) await house.loop.step();
  expect(house.failures).toEqual([]);
  const { state, step, last_gate, labels } = house.loop.status();
  expect([state, step]).toEqual(['waiting', 3]);
  expect(last_gate?.tests.map(({ name }) => name)).toContain('non-inferiority');
  expect(labels).toMatchObject({
    questions_to_train_on: COLOURS.filter((colour) => isTaught(`What is ${colour}?`)).length,
    questions_to_judge_by: 4,
    unused: { 'not to be asked: the window is too small for the question': 2 },
  });
  expect(house.notes.filter((line) => line.includes('maximum context length'))).toHaveLength(2);
});

test('replies that are no replies fail steps over those questions alone: the next one is about others', async () => {
  const questions = COLOURS.map((colour) => `What is ${colour}?`)
    .filter(isTaught)
    .slice(0, 4);
  const asked: string[][] = [];
  house = await openLoopHouse(
    homeOf('elsewhere'),
    {},
    {
      grade: async (answers) => {
        asked.push([...new Set(answers.map(({ record }) => record.question))]);
        throw new IntegrityError('the answer is no chat completion');
      },
    },
  );
  for (const question of questions) await say(await ask(question), { golden_answers: ['x'] });
  await house.loop.step();
  await house.loop.step();
  expect(house.failures).toHaveLength(2);
  expect(asked.map(({ length }) => length)).toEqual([2, 2]);
  expect(new Set(asked.flat()).size).toBe(4);
});

test('dapo asks further questions in place of those whose rollouts are all worth the same', async () => {
  const questions = COLOURS.map((colour) => `What is ${colour}?`).filter(isTaught);
  const rounds: string[][] = [];
  house = await openLoopHouse(
    homeOf('dapo'),
    { 'loop.algorithm': 'dapo' },
    {
      grade: async (answers) => {
        const asked = [...new Set(answers.map(({ record }) => record.question))];
        rounds.push(asked);
        // One question of the first round says nothing.
        const dull = rounds[0]?.[0];
        return answers.map(({ record }, i) => ({
          scores: {
            reward: record.question === dull ? 0 : i % 2,
            em: 0,
            subEm: 0,
            f1: 0,
            formatScore: 0,
            wellFormed: false,
            searches: 0,
          },
          source: 'gold',
          rule: 'every other one',
        }));
      },
    },
  );
  const ids = new Map<string, string>();
  for (const question of questions) {
    ids.set(question, await ask(question));
    await say(ids.get(question) as string, { golden_answers: ['x'] });
  }
  await house.loop.step();
  expect(house.failures).toEqual([]);
  expect(rounds.map(({ length }) => length)).toEqual([2, 1]);
  expect(new Set(rounds.flat()).size).toBe(3);
  const [adapter] = await house.store.adapters();
  const origins = (adapter?.trajectoryIds ?? []).filter((id) => !id.startsWith('loop-'));
  const used = [rounds[0]?.[1], rounds[1]?.[0]] as string[];
  expect(origins.sort()).toEqual(used.map((question) => ids.get(question)).sort());
});
