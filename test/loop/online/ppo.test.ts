// PPO in the loop: where its process is killed, where the algorithm changes, and where records are deleted, the critic is the
// one that belongs to the policy.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTrajectoryStore } from '../../../src/trajectory/index.js';
import type { AdapterRecord } from '../../../src/trajectory/store/types.js';
import { builtArguments } from '../../cli/support/built-cli.js';
import { feedback, makeRecord, notes } from '../../trajectory/store/support.js';
import { openLoopHouse, type RunningHouse, TINY_LOOP, writeGateQuestions } from '../support/loop-house.js';
import { importTiny } from '../support/tiny-rl-run.js';

jest.setTimeout(600_000);

const root = mkdtempSync(join(tmpdir(), 'searchloop-ppo-'));
const asked = join(root, 'asked');
beforeAll(async () => {
  await importTiny(asked, join(__dirname, '..', '..', 'fixtures'));
  const store = openStore(asked);
  for (const colour of ['red', 'green', 'blue', 'white', 'black', 'grey']) {
    const question = `What is ${colour}?`;
    const messages = [{ role: 'user', content: question }];
    await store.put(makeRecord(colour, { question }), notes({ messages }));
    await store.addFeedback(feedback(colour, { role: 'admin', goldAnswers: ['a colour'] }));
  }
  await store.close();
  writeFileSync(
    join(root, 'reward.mjs'),
    `export default (items) => items.map(({ record: { tokenIds, lossMask } }) => {
       const sampled = tokenIds.filter((_, t) => lossMask[t] === 1);
       return sampled.filter((id) => id < 256).length / Math.max(1, sampled.length);
     });\n`,
  );
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const dataOf = (home: string): string => join(home, 'data');
const checkpoint = (home: string, step: number): string =>
  join(dataOf(home), 'loop', 'checkpoints', `step-0000000${step}`);
const openStore = (home: string) =>
  openTrajectoryStore({
    storage: { kind: 'sqlite', path: join(dataOf(home), 'trajectories.db') },
    retry: false,
  });

function homeOf(name: string, from = asked): string {
  const home = join(root, name);
  cpSync(from, home, { recursive: true });
  return home;
}

/** One slot and no shared prompts: each rollout comes out the same to the bit, whatever ran before it. */
const FLAGS = {
  'engine.maxSequences': 1,
  'engine.prefixCacheTokens': 0,
  'training.valueLearningRate': 0.01,
  'training.valueWarmupShare': 0,
  'training.batchSequences': 4,
  'training.groupSize': 2,
  'loop.algorithm': 'ppo',
} as const;

async function withHouse<T>(
  home: string,
  work: (house: RunningHouse) => Promise<T>,
  flags: Readonly<Record<string, unknown>> = {},
  more: Parameters<typeof openLoopHouse>[2] = {},
): Promise<T> {
  const house = await openLoopHouse(home, { ...FLAGS, ...flags }, more);
  try {
    const result = await work(house);
    expect(house.failures).toEqual([]);
    return result;
  } finally {
    await house.close();
  }
}

/**
 * A step of the built command line, whose process is killed as soon as a checkpoint of that name is there or being written.
 * Settings and reward are those of the house.
 */
async function killedStep(home: string, name: string): Promise<void> {
  const settings = {
    'paths.home': home,
    'paths.data': dataOf(home),
    'retrieval.kind': 'remote',
    // Nothing is searched here.
    'retrieval.remoteUrl': 'http://127.0.0.1:9',
    'reward.module': join(root, 'reward.mjs'),
    ...TINY_LOOP,
    ...FLAGS,
  };
  const texts = Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, String(value)]));
  const child = spawn(process.execPath, builtArguments(['loop', 'run', '--once'], texts), {
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  const folder = join(dataOf(home), 'loop', 'checkpoints');
  const isThere = () => existsSync(folder) && readdirSync(folder).some((found) => found.includes(name));
  while (!isThere() && child.exitCode === null) await sleep(1);
  child.kill('SIGKILL');
  const [code, signal] = await ended;
  // On a slow machine the step may be over before it is seen; it must not have failed.
  expect(code ?? signal).toBe(code === null ? 'SIGKILL' : 0);
}

const figuresOf = (adapters: readonly AdapterRecord[]): Record<string, number>[] =>
  adapters.map(({ receipt }) => (receipt as { metrics: Record<string, number> }).metrics);
/** What is there after a step: policy and critic. */
const stateOf = ({ digest, receipt }: AdapterRecord): unknown => [
  digest,
  (receipt as { state: string }).state,
];
const updatesOf = (home: string, at: number): unknown =>
  JSON.parse(readFileSync(join(checkpoint(home, at), 'state.json'), 'utf8')).updates;

test('killed at any moment, the loop with a critic comes to the same adapter and critic as the undisturbed one', async () => {
  const whole = homeOf('whole');
  const adapters = await withHouse(whole, async ({ loop, store }) => {
    for (const _ of [1, 2]) await loop.once();
    expect(loop.status()).toMatchObject({ step: 2, algorithm: 'ppo', last_error: null });
    return store.adapters();
  });
  const figures = figuresOf(adapters);
  expect(figures).toHaveLength(2);
  for (const figure of ['valueLoss', 'returnMean', 'valueGradientNorm', 'kl', 'klCharge', 'reward'])
    for (const row of figures) expect(row).toHaveProperty(figure, expect.any(Number));
  // A new critic knows nothing; then it learns.
  expect(figures[0]?.valueMean).toBe(0);
  expect(Math.abs(figures[1]?.valueMean as number)).toBeGreaterThan(0);
  expect(readdirSync(join(checkpoint(whole, 2), 'critic'))).toContain('value_head.safetensors');
  expect(updatesOf(whole, 2)).toEqual({ policy: 2, critic: 2 });

  const killed = homeOf('killed');
  // While the checkpoint of the start, then of the first step, is written or entered.
  await killedStep(killed, 'step-00000000');
  await killedStep(killed, 'step-00000001');
  await withHouse(killed, async ({ loop, store }) => {
    while (loop.status().step < 2 && (await loop.once()));
    expect((await store.adapters()).map(stateOf)).toEqual(adapters.map(stateOf));
  });
});

test('the algorithm may change: a critic is left out or begins anew, the policy goes on', async () => {
  const home = join(root, 'whole');
  const left = await withHouse(
    home,
    async ({ loop, notes: said }) => {
      await loop.once();
      expect(said.join('\n')).toContain('the critic of step 2 is left out: rloo needs none');
      return loop.status().candidate;
    },
    { 'loop.algorithm': 'rloo' },
  );
  expect(updatesOf(home, 3)).toEqual({ policy: 3 });
  expect(existsSync(join(checkpoint(home, 3), 'critic'))).toBe(false);
  // As a build before this one wrote it.
  const run = join(dataOf(home), 'loop', 'run.json');
  const { identity, ...others } = JSON.parse(readFileSync(run, 'utf8'));
  writeFileSync(run, JSON.stringify({ ...others, identity: { ...identity, critic: false } }));

  await withHouse(home, async ({ loop, store, notes: said }) => {
    await loop.once();
    expect(said.join('\n')).toContain(
      'the checkpoint of step 3 has no critic, and ppo needs one: it begins anew',
    );
    const last = (await store.adapters()).at(-1);
    expect(last).toMatchObject({ digest: loop.status().candidate, parentDigest: left });
    expect(figuresOf(last === undefined ? [] : [last])[0]).toMatchObject({ valueMean: 0 });
  });
  expect(updatesOf(home, 4)).toEqual({ policy: 4, critic: 1 });
});

test('where records were deleted, the critic goes back with the policy to the live version', async () => {
  const home = homeOf('deleted');
  const flags = { 'loop.gateData': writeGateQuestions(join(home, 'gate.jsonl'), 12), 'loop.gateEvery': 2 };
  const gate = { questions: 12, margin: 0.5, confirmEvery: 0 };
  await withHouse(
    home,
    async ({ loop, store }) => {
      for (const _ of [1, 2, 3]) await loop.step();
      const before = loop.status();
      expect(before).toMatchObject({ last_error: null, step: 3, counts: { published: 1 } });
      const candidate = (await store.adapters()).find(({ digest }) => digest === before.candidate);
      await store.delete({ ids: [candidate?.trajectoryIds[0] as string] });
      await loop.step();
      const refused = loop.status();
      expect(refused).toMatchObject({ candidate: before.live, live: before.live, counts: { refused: 1 } });
      expect(refused.last_gate?.reasons.join()).toMatch(/deleted/);
      await loop.step();
      // Step 3 once more, from where the live version stood.
      const manifest = JSON.parse(readFileSync(join(checkpoint(home, 3), 'manifest.json'), 'utf8'));
      expect(manifest.parent).toBe(before.live);
      expect(updatesOf(home, 3)).toEqual({ policy: 3, critic: 3 });
      expect(existsSync(checkpoint(home, 4))).toBe(false);
    },
    { ...flags, 'engine.maxSequences': 8 },
    { gate },
  );
});
