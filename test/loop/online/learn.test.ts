import { loadConfig } from '../../../src/config/index.js';
import type { GenerationSequence, Generator } from '../../../src/engine/index.js';
import { learnedSoFar } from '../../../src/loop/offline/learned.js';
import type { Batch, Plan } from '../../../src/loop/online/batch.js';
import type { LoopHouse } from '../../../src/loop/online/house.js';
import { trainOn, unjudged } from '../../../src/loop/online/learn.js';
import { createPriority } from '../../../src/loop/online/priority.js';
import { loopRunSettings } from '../../../src/loop/online/run-settings.js';
import { type LoopState, newLoopState } from '../../../src/loop/online/state.js';
import { newSequentialState } from '../../../src/loop/online/statistics/sequential-test.js';
import type { StepReport, StepWork, Trainer } from '../../../src/training/index.js';
import type { TrajectoryRecord } from '../../../src/trajectory/index.js';
import { makeRecord } from '../../trajectory/store/support.js';
import { newWatch } from '../support/watch.js';

const { loop } = loadConfig({ env: {}, flags: { 'loop.gateEvery': 3 } });
const after = (stepsSinceGate: number, changes: Partial<LoopState>): string | null =>
  unjudged({ settings: loop }, { ...newLoopState(0, 'base'), stepsSinceGate, ...changes });

const watch = (share: number) =>
  newWatch({ version: 'a'.repeat(64), share, test: { ...newSequentialState(), pairs: 7 } });

test('training runs no further ahead of a trial than of a gate that waits', () => {
  expect(after(11, { watch: watch(0.1) })).toBeNull();
  expect(after(12, { watch: watch(0.1) })).toMatch(
    /^version aaaaaaaaaaaa is on trial.*labelled 7 pairs.*after 400$/,
  );
  // What is live itself is watched while others are judged.
  expect(after(99, { watch: watch(1) })).toBeNull();
  const lastGate = { version: 'b', verdict: 'waits', reasons: ['too few'], tests: [], at: 0 } as const;
  const waits = { lastGate: { ...lastGate, reasons: ['too few'], tests: [] } };
  expect([after(11, waits), after(12, waits)]).toEqual([null, 'too few']);
});

/** A step over nothing, and the users beside it. @param during  the trainer's work */
function stepBeside(during: (pause: Int32Array) => Promise<void>, signal = new AbortController().signal) {
  const config = loadConfig({ env: {}, flags: { 'training.schedule': 'cosine', 'training.warmupShare': 0 } });
  const engine = {
    info: { maxSequences: 8 },
    open: async () => ({ close: () => {} }) as GenerationSequence,
  } as unknown as Generator;
  const priority = createPriority(engine, { idleMs: 0, patienceMs: null });
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const run = loopRunSettings(config, { maxSequenceTokens: 640 });
  const settings = { ...config.loop, demonstrationWeight: 3 };
  const house = { run, settings, priority, pause, folder: '/a/loop' } as unknown as LoopHouse;
  let work: StepWork | null = null;
  const trainer = {
    step: 700,
    committed: { folder: '/a/loop/checkpoints/step-700', step: 700, version: 'v' },
    run: async (given: StepWork) => {
      work = given;
      await during(pause);
      return 'report' as unknown as StepReport;
    },
  } as unknown as Trainer;
  const plan = { step: 1, seed: 0 } as Plan;
  const train = (demonstrations: readonly { readonly record: TrajectoryRecord }[] = []) =>
    trainOn(
      house,
      trainer,
      { rollouts: [], demonstrations } as unknown as Batch,
      plan,
      learnedSoFar(run),
      signal,
    );
  return { priority, pause, run, train, work: () => work };
}

test('a step begins when users rest, stands still while they are there, and leaves no pause behind', async () => {
  const seen: number[] = [];
  const house = stepBeside(async (pause) => {
    seen.push(pause[0] as number);
    const user = await house.priority.users.open();
    seen.push(pause[0] as number);
    user.close();
    await house.priority.idle();
    seen.push(pause[0] as number);
    last = await house.priority.users.open();
  });
  let last: GenerationSequence | undefined;
  const before = await house.priority.users.open();
  const trained = house.train();
  await new Promise(setImmediate);
  expect(house.work()).toBeNull();
  before.close();
  expect(await trained).toBe('report');
  expect(seen).toEqual([0, 1, 0]);
  expect(house.pause[0]).toBe(0);
  // Nobody listens any more.
  last?.close();
  await house.priority.idle();
  house.pause[0] = 7;
  (await house.priority.users.open()).close();
  expect(house.pause[0]).toBe(7);
});

test('a step that shall end does not stand still for users', async () => {
  const stop = new AbortController();
  const seen: number[] = [];
  const house = stepBeside(async (pause) => {
    await house.priority.users.open();
    seen.push(pause[0] as number);
    stop.abort();
    seen.push(pause[0] as number);
  }, stop.signal);
  await house.train();
  expect(seen).toEqual([1, 0]);
});

test('the distance is that to the start of the loop, and the rate falls towards no end', async () => {
  const house = stepBeside(async () => {});
  await house.train();
  expect(house.work()).toMatchObject({
    reference: '/a/loop/checkpoints/step-00000000',
    policy: { learningRate: house.run.policySchedule.peak },
  });
});

test('demonstrations are learned as they are, with their weight; what a search brought is known for it', async () => {
  const house = stepBeside(async () => {});
  const record = makeRecord('shown', { question: 'q' });
  await house.train([{ record }]);
  const { sequences, demonstrationWeight } = house.work() as StepWork;
  expect(demonstrationWeight).toBe(3);
  expect(sequences).toHaveLength(1);
  const [shown] = sequences;
  expect(shown).toMatchObject({ id: 'shown', rollout: null });
  expect([...(shown?.tokenIds ?? [])]).toEqual([...record.tokenIds]);
  expect([...(shown?.lossMask ?? [])]).toEqual([...record.lossMask]);
  const searched = record.observations.filter(({ kind }) => kind === 'search');
  for (const { range } of searched) expect(shown?.environmentMask.slice(...range)).not.toContain(0);
});
