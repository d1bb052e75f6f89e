import { setTimeout as sleep } from 'node:timers/promises';
import { type LoopHooks, type LoopStartOptions, startLoop } from '../../src/cli/loop-start.js';
import { ConfigError, UnavailableError } from '../../src/errors.js';
import type { OpenedLoop } from '../../src/loop/index.js';
import { createLogger } from '../../src/telemetry/index.js';

const logger = createLogger({ level: 'silent' });
let ended: Error | null;
let isElsewhere: boolean;
let learningTrouble: string | null;
let running: number;
let closed: number;
beforeEach(() => {
  ended = null;
  isElsewhere = false;
  learningTrouble = null;
  running = 0;
  closed = 0;
});
const loop = {
  runInBackground: () => {
    running++;
  },
  trouble: () => learningTrouble,
} as OpenedLoop['loop'];
const opened: OpenedLoop = {
  loop,
  ended: () => ended,
  mayReturn: async () => isElsewhere,
  close: async () => {
    closed++;
  },
};
const start = (open: LoopStartOptions['open'], onOpened = (): void => {}) =>
  startLoop({ open, onOpened, logger, retryMs: 10, patienceMs: 60_000 });

test('a store that is away at the start is waited for, and answers are not', async () => {
  let tries = 0;
  let isOpen = (): void => {};
  const opens = new Promise<void>((resolve) => {
    isOpen = resolve;
  });
  const started = start(async () => {
    if (++tries < 4) throw new UnavailableError('connect ECONNREFUSED');
    return opened;
  }, isOpen);
  expect(started.trouble()).toBe('it is starting');
  await started.settled;
  expect([started.loop(), started.trouble()]).toEqual([null, 'it has not started: connect ECONNREFUSED']);
  await opens;
  await sleep(0);
  expect([started.loop(), started.trouble(), running, tries]).toEqual([loop, null, 1, 4]);
  learningTrouble = 'searches fail';
  expect(started.trouble()).toBe('searches fail');
  ended = new Error('the claim is gone');
  expect(started.trouble()).toBe('it has ended, as another process has it now: the claim is gone');
  expect(started.loop()).toBeNull();
  await sleep(50);
  expect(tries).toBe(4);
  await started.close();
  expect(closed).toBe(1);
});

test('a loop that another process ended waits for the folder and goes on after it', async () => {
  let tries = 0;
  let again = (): void => {};
  const started = start(({ onWait }) => {
    if (++tries === 1) return Promise.resolve(opened);
    onWait?.('another process trains there');
    return new Promise((resolve) => {
      again = () => resolve({ ...opened, ended: () => null });
    });
  });
  await started.settled;
  expect(started.loop()).toBe(loop);
  isElsewhere = true;
  ended = new Error('the claim is gone');
  expect(started.loop()).toBeNull();
  while (tries < 2) await sleep(5);
  expect([closed, started.trouble()]).toEqual([1, 'it has not started: another process trains there']);
  again();
  while (started.loop() === null) await sleep(5);
  expect([started.trouble(), running]).toEqual([null, 2]);
  await started.close();
});

test('a disk that fails for a while is waited for', async () => {
  let tries = 0;
  const started = start(async () => {
    if (++tries < 3) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
    return opened;
  });
  await started.settled;
  while (started.loop() === null) await sleep(5);
  expect(tries).toBe(3);
  await started.close();
});

test('what no waiting helps is tried once', async () => {
  let tries = 0;
  const started = start(async () => {
    tries++;
    throw new ConfigError('too few');
  });
  await started.settled;
  await sleep(50);
  expect([tries, started.trouble()]).toEqual([1, 'it has not started: too few']);
  await started.close();
});

test('while another process has the folder answers are given; the end of the server ends the wait', async () => {
  const started = start(
    ({ onWait, signal }: LoopHooks) =>
      new Promise((_, reject) => {
        onWait?.('another process trains there');
        signal?.addEventListener('abort', () => reject(new Error('aborted')));
      }),
  );
  await started.settled;
  expect(started.trouble()).toBe('it has not started: another process trains there');
  await started.close();
  expect(closed).toBe(0);
});
