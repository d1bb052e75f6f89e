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
