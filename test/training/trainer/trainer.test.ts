import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { CancelledError, NonFiniteError, UnavailableError } from '../../../src/errors.js';
import { listCheckpoints, openTrainer, type Trainer, trainerTask } from '../../../src/training/index.js';
import type { CommitReport, StepReport } from '../../../src/training/trainer/messages.js';
import { compileEntry } from '../../support/compile-entry.js';
import type { BigramSpec } from '../support/bigram-entry.js';
import { madeRollouts, stepWork } from '../support/rollouts.js';
import { beginSession } from '../support/session.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-trainer-'));
const entry = compileEntry(
  join(folder, 'entry'),
  ['bigram-model', 'bigram-entry'].map((name) => join(__dirname, '..', 'support', `${name}.ts`)),
);
const open: Trainer[] = [];
afterEach(async () => {
  for (const trainer of open.splice(0)) await trainer.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

const VOCAB = 6;
const rollouts = madeRollouts(3, 4, VOCAB, 'v');
const work = (step: number) =>
  stepWork('grpo', rollouts, { step, version: 'v', microBatchTokens: 40, settings: { klPlace: 'none' } });

let runs = 0;
async function start(trouble?: string) {
  const root = join(folder, `run-${runs++}`);
  const spec: BigramSpec = {
    vocabSize: VOCAB,
    critic: false,
    seed: 1,
    ...(trouble === undefined ? {} : { trouble: join(folder, trouble) }),
  };
  const options = { entry, spec, root, configDigest: 'c'.repeat(64), niceness: 0 };
  const trainer = await openTrainer({ ...options, from: null });
  open.push(trainer);
  return { trainer, root, options };
}

test('steps since the last commit are done again when the thread dies, in a step or in a commit', async () => {
  const calm = await start();
  for (const step of [1, 2, 3]) await calm.trainer.run(work(step));
  const expected = await calm.trainer.commit({ note: 'kept' });
  // Each step runs seven micro-batches or so: this one dies in the third step.
  const shaky = await start('dies');
  await shaky.trainer.run(work(1));
  await shaky.trainer.run(work(2));
  writeFileSync(join(folder, 'dies'), 'exit 1');
  const report = await shaky.trainer.run(work(3));
  expect(report).toMatchObject({ step: 3, state: expected.state });
  expect(await shaky.trainer.commit()).toMatchObject({
    state: expected.state,
    version: expected.version,
    step: 3,
  });
  expect(shaky.trainer.step).toBe(3);
});

test('a thread that dies every time gives the step up', async () => {
  const { trainer } = await start('always');
  writeFileSync(join(folder, 'always'), 'always');
  await expect(trainer.run(work(1))).rejects.toThrow(UnavailableError);
  expect(trainer.step).toBe(0);
  rmSync(join(folder, 'always'));
  expect(await trainer.run(work(1))).toMatchObject({ step: 1 });
});

test('a number that is not finite crosses as its own error and changes nothing', async () => {
  const { trainer } = await start('poisoned');
  const calm = await start();
  const undisturbed = await calm.trainer.run(work(1));
  writeFileSync(join(folder, 'poisoned'), 'nan');
  await expect(trainer.run(work(1))).rejects.toThrow(NonFiniteError);
  expect(trainer.step).toBe(0);
  expect(await trainer.run(work(1))).toMatchObject({ state: undisturbed.state });
});

test('a cancelled step leaves the state before it, and the thread lives on', async () => {
  const { trainer } = await start('waits');
  const calm = await start();
  for (const step of [1, 2]) await calm.trainer.run(work(step));
  const expected = await calm.trainer.commit();
  await trainer.run(work(1));
  const stop = new AbortController();
  // In the middle of the step, however late this thread hears of its tokens.
  writeFileSync(join(folder, 'waits'), 'wait 4');
  const onTokens = (): void => {
    stop.abort();
    rmSync(join(folder, 'waits'), { force: true });
  };
  const cancelled = trainer.run(work(2), { signal: stop.signal, onTokens });
  await expect(cancelled).rejects.toThrow(CancelledError);
  expect(trainer.step).toBe(1);
  await trainer.run(work(2));
  expect(await trainer.commit()).toMatchObject({ state: expected.state });
});

test('a trainer opened at a checkpoint goes on with what the run carried', async () => {
  const { trainer, root, options } = await start();
  await trainer.run(work(1));
  await trainer.commit({ baselines: { overall: 0.5 } });
  const [, last] = (await listCheckpoints(root)).checkpoints;
  expect(last?.manifest).toMatchObject({ step: 1, parent: expect.stringMatching(/^[0-9a-f]{64}$/) });
  const after = await trainer.run(work(2));
  const again = await openTrainer({ ...options, from: last ?? null });
  open.push(again);
  expect(again.carried).toEqual({ baselines: { overall: 0.5 } });
  expect(again.step).toBe(1);
  expect(await again.run(work(2))).toMatchObject({ state: after.state });
});

test('a checkpoint goes on with another algorithm: a critic begins anew or is left out, and only where that was said', async () => {
  const { trainer, root, options } = await start();
  await trainer.run(work(1));
  await trainer.commit();
  const last = async () => (await listCheckpoints(root)).checkpoints.at(-1) ?? null;
  const reopen = async (critic: boolean, isSaid = true, trouble?: string) => {
    const spec = {
      ...options.spec,
      critic,
      ...(trouble === undefined ? {} : { trouble: join(folder, trouble) }),
    };
    const from = await last();
    const opened = await openTrainer({ ...options, spec, from, ...(isSaid ? { critic } : {}) });
    open.push(opened);
    return opened;
  };
  const ppo = (step: number) =>
    stepWork('ppo', rollouts, { step, version: 'v', microBatchTokens: 40, settings: { klPlace: 'none' } });

  await expect((await reopen(true, false)).run(ppo(2))).rejects.toThrow(UnavailableError);
  const begun = await reopen(true);
  expect(begun).toMatchObject({ criticChange: 'begun', step: 1 });
  expect(begun.committed.version).toBe((await last())?.manifest.version);
  const { state, metrics } = await begun.run(ppo(2));
  expect(metrics).toMatchObject({ valueMean: expect.any(Number), valueLoss: expect.any(Number) });
  // The same critic begins also where the thread dies, or the process.
  const shaky = await reopen(true, true, 'begun');
  writeFileSync(join(folder, 'begun'), 'exit 1');
  expect(await shaky.run(ppo(2))).toMatchObject({ state });

  await begun.commit();
  expect(await reopen(true)).toMatchObject({ criticChange: null, committed: { state } });
  const left = await reopen(false);
  expect(left).toMatchObject({ criticChange: 'left out', step: 2 });
  expect(left.committed.state).not.toBe(state);
  expect((await left.run(work(3))).metrics).not.toHaveProperty('valueLoss');
  await left.commit();
  expect(await reopen(false)).toMatchObject({ criticChange: null, step: 3 });
});

test('a thread that is new takes a step without an update for lost too, however equal its values are', async () => {
  const { open: openModel, root } = await beginSession(folder);
  const configDigest = '0'.repeat(64);
  const thread = () => {
    const run = trainerTask(openModel);
    return async (task: object) => {
      const envelope = { task: { session: 'run', spec: null, root, configDigest, ...task }, niceness: 0 };
      const { port1: port } = new MessageChannel();
      return run({ ...envelope, port, cancelled: new Int32Array(1) });
    };
  };
  const first = thread();
  const begun = await first({ kind: 'begin' });
  const committed = (begun as { result: CommitReport }).result;
  const still = { learningRate: 0, weightDecay: 0, maxGradientNorm: 1 };
  const done = await first({
    kind: 'step',
    from: committed,
    committed,
    work: { ...work(1), policy: still },
  });
  const { step, state } = (done as { result: StepReport }).result;
  expect({ step, state }).toEqual({ step: 1, state: committed.state });
  const commit = { kind: 'commit', from: { step, state }, committed, carried: {} };
  expect(await thread()(commit)).toMatchObject({
    ok: false,
    error: { message: expect.stringMatching(/^step 1, state \w+ of run run was lost with its thread$/) },
  });
  expect(await first(commit)).toMatchObject({ ok: true, result: { step: 1, state } });
});
