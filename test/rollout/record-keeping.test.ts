import { configSchema } from '../../src/config/index.js';
import { createRolloutRunner, loadPrompts, type RolloutEvent } from '../../src/rollout/index.js';
import { keepRecord, type RecordKeeping } from '../../src/rollout/record-keeping.js';
import type { TrajectoryRecord } from '../../src/trajectory/index.js';
import { createMemoryRetriever } from '../support/memory-retriever.js';
import { createKit, doneOf, PASSAGES, RAW_POLICY } from '../support/rollout-kit.js';

const kit = createKit({ turns: ['<answer>Lisbon</answer>'] });
const record = { id: 'r' } as TrajectoryRecord;
const keep = (keeping: RecordKeeping) => keepRecord(record, kit.request(), keeping);

function runnerWith(keeping: RecordKeeping) {
  const { tokenizer, generator, request } = createKit({ turns: ['<answer>Lisbon</answer>'] });
  const runner = createRolloutRunner({
    generator,
    tokenizer,
    retriever: createMemoryRetriever({ passages: PASSAGES }),
    config: configSchema.parse({}).rollout,
    prompts: loadPrompts({ prompt: 'search-r1' }),
    ...keeping,
  });
  return { generator, run: () => runner.run(request({ sampling: RAW_POLICY })) };
}

test('nobody keeps records: null; kept: true; failed: false, and the failure is told', async () => {
  const failures: string[] = [];
  const onRecordFailure = (error: Error) => void failures.push(error.message);
  expect(await keep({})).toBeNull();
  expect(await keep({ onRecord: () => {} })).toBe(true);
  expect(await keep({ onRecord: async () => {} })).toBe(true);
  const broken = () => {
    throw new Error('disk full');
  };
  expect(await keep({ onRecord: broken, onRecordFailure })).toBe(false);
  expect(await keep({ onRecord: async () => broken() })).toBe(false);
  expect(failures).toEqual(['disk full']);
});

test('the wait is bounded; what fails later is still told', async () => {
  const failures: string[] = [];
  let fail = (_error: Error): void => {};
  const onRecord = () => new Promise<void>((_, reject) => (fail = reject));
  expect(
    await keep({
      onRecord,
      recordTimeoutMs: 1,
      onRecordFailure: (error) => void failures.push(error.message),
    }),
  ).toBe(false);
  fail(new Error('late'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(failures).toEqual(['late']);
});

test('done says what came of it; the slot is free while the store works', async () => {
  let slots = -1;
  const { generator, run } = runnerWith({
    onRecord: async () => {
      slots = generator.openSlots;
    },
  });
  const events: RolloutEvent[] = [];
  for await (const event of run()) events.push(event);
  expect(doneOf(events).stored).toBe(true);
  expect(slots).toBe(0);
});

test('a reader that leaves early does not wait; its record is kept once', async () => {
  const stops: string[] = [];
  const { run } = runnerWith({ onRecord: (kept) => void stops.push(kept.stop) });
  for await (const _event of run()) break;
  expect(stops).toEqual(['cancelled']);
});

test('a reader that leaves while the record is being kept: the record stays what it was', async () => {
  const stops: string[] = [];
  let release = (): void => {};
  const { run } = runnerWith({
    onRecord: (kept) => {
      stops.push(kept.stop);
      return new Promise<void>((resolve) => (release = resolve));
    },
    recordTimeoutMs: 60_000,
  });
  const rollout = run();
  let next = rollout.next();
  while (stops.length === 0) {
    const settled = await Promise.race([
      next.then(() => true),
      new Promise((resolve) => setImmediate(resolve, false)),
    ]);
    if (settled) next = rollout.next();
  }
  const left = rollout.return();
  release();
  await left;
  expect(stops).toEqual(['answer']);
});
