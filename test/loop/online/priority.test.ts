import { setTimeout as sleep } from 'node:timers/promises';
import type { GenerationSequence, Generator, OpenOptions } from '../../../src/engine/index.js';
import { createPriority } from '../../../src/loop/online/priority.js';

/** Sequences that stay open until they are closed, or their signal fires. */
function engine() {
  const open = new Set<OpenOptions>();
  const generator = {
    info: { maxSequences: 8 },
    async open(options: OpenOptions = {}): Promise<GenerationSequence> {
      open.add(options);
      options.signal?.addEventListener('abort', () => open.delete(options));
      return { close: () => open.delete(options) } as unknown as GenerationSequence;
    },
  } as unknown as Generator;
  return { open, generator };
}

const never = new AbortController().signal;

test('a user sends the loop away at once, and it comes back when nobody was there for a while', async () => {
  const { open, generator } = engine();
  const priority = createPriority(generator, { idleMs: 40, patienceMs: null });
  const first = priority.training(never);
  await first.generator.open();
  expect(open.size).toBe(1);

  const heard: boolean[] = [];
  priority.watch((mayWork) => heard.push(mayWork));
  const user = await priority.users.open();
  expect(first.yielded()).toBe(true);
  expect(open.size).toBe(1);
  expect(priority).toMatchObject({ busy: true, yields: 1 });

  let opened = false;
  const second = priority
    .training(never)
    .generator.open()
    .then(() => (opened = true));
  await sleep(60);
  expect(opened).toBe(false);
  user.close();
  user.close();
  const other = await priority.users.open();
  await sleep(60);
  // The pause between two users was too short.
  expect(opened).toBe(false);
  other.close();
  await second;
  expect(heard).toEqual([false, true]);
  expect(priority.busy).toBe(false);
});

test('users without a pause: after its patience the loop goes on beside them, with a quarter of the slots', async () => {
  const { generator } = engine();
  const priority = createPriority(generator, { idleMs: 10, patienceMs: 40 });
  expect(priority.concurrency).toBe(8);
  const user = await priority.users.open();
  const training = priority.training(never);
  await training.generator.open();
  expect(priority.concurrency).toBe(2);
  // The next user does not send it away any more.
  const second = await priority.users.open();
  expect(training.yielded()).toBe(false);
  user.close();
  second.close();
  await sleep(40);
  expect(priority.concurrency).toBe(8);
});

test('many that wait for a place beside users take no more of them than there are', async () => {
  jest.useFakeTimers();
  const { open, generator } = engine();
  const priority = createPriority(generator, { idleMs: 5, patienceMs: 60 });
  const user = await priority.users.open();
  const opened: GenerationSequence[] = [];
  for (let i = 0; i < 8; i++)
    void priority
      .training(never)
      .generator.open()
      .then((sequence) => opened.push(sequence));
  await jest.advanceTimersByTimeAsync(60);
  expect([open.size, opened.length]).toEqual([3, 2]);
  // Of a place that comes free all the others hear.
  opened[0]?.close();
  await jest.advanceTimersByTimeAsync(0);
  expect([open.size, opened.length]).toEqual([3, 3]);
  user.close();
  await jest.advanceTimersByTimeAsync(5);
  expect(opened).toHaveLength(8);
  jest.useRealTimers();
});

test('a user who leaves by their signal, or never gets a slot, is not counted for ever', async () => {
  const { generator } = engine();
  const priority = createPriority(generator, { idleMs: 0, patienceMs: null });
  const leaving = new AbortController();
  await priority.users.open({ signal: leaving.signal });
  expect(priority.busy).toBe(true);
  leaving.abort();
  expect(priority.busy).toBe(false);
  generator.open = () => Promise.reject(new Error('full'));
  await expect(priority.users.open()).rejects.toThrow('full');
  expect(priority.busy).toBe(false);
  await priority.idle();
});

test('waiting for idleness can be given up', async () => {
  const { generator } = engine();
  const priority = createPriority(generator, { idleMs: 1, patienceMs: null });
  await priority.users.open();
  const stop = new AbortController();
  const waiting = priority.training(stop.signal).generator.open();
  stop.abort();
  await expect(waiting).rejects.toThrow('cancelled');
});

test('users who are back after each short pause: once its patience has run out, the loop keeps a quarter of the slots', async () => {
  jest.useFakeTimers();
  const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);
  const { open, generator } = engine();
  const priority = createPriority(generator, { idleMs: 5, patienceMs: 60 });
  const comeAndGo = async (): Promise<void> => {
    const user = await priority.users.open();
    user.close();
    await pass(20);
  };
  // Each pause is long enough to begin something, and the next user ends it.
  const first = priority.training(never);
  await comeAndGo();
  await first.generator.open();
  await comeAndGo();
  expect(first.yielded()).toBe(true);
  await comeAndGo();
  await comeAndGo();
  const later = Array.from({ length: 3 }, () => priority.training(never));
  const sequences = [];
  for (const { generator: own } of later) sequences.push(await own.open());
  await comeAndGo();
  // The youngest left.
  expect(later.map(({ yielded }) => yielded())).toEqual([false, false, true]);
  // A place beside users is taken when one of the others ends.
  const user = await priority.users.open();
  const before = open.size;
  const next = priority.training(never).generator.open();
  await pass(20);
  expect(open.size).toBe(before);
  sequences[0]?.close();
  await next;
  expect(open.size).toBe(before);
  user.close();
  // They rest: from now on the next user sends it away again.
  await pass(90);
  await priority.users.open();
  expect(later[1]?.yielded()).toBe(true);
  jest.useRealTimers();
});
