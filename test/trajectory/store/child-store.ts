// The store of a child process, as calls.

import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { FeedbackInput, TrajectoryRecord } from '../../../src/trajectory/index.js';
import type { QueueHealth } from '../../../src/trajectory/store/write-queue.js';
import { notes } from './support.js';

export interface ChildStore {
  /** Resolves when the child says that it is stored. */
  put(record: TrajectoryRecord): Promise<boolean>;
  addFeedback(input: FeedbackInput): Promise<string>;
  health(): Promise<QueueHealth>;
  /** Longest delay of the child's event loop since the last call, milliseconds. */
  longestDelayMs(): Promise<number>;
  close(): Promise<void>;
  /** kill -9 */
  kill(): Promise<void>;
}

export async function startChildStore(
  file: string,
  environment: Record<string, string> = {},
): Promise<ChildStore> {
  const child = fork(join(__dirname, 'store-child.mjs'), [file], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: [],
  });
  const waiting = new Map<string, { resolve(value: never): void; reject(error: Error): void }>();
  child.on('message', ({ id, ok, error }: { id: string; ok?: unknown; error?: string }) => {
    const call = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) call?.resolve(ok as never);
    else call?.reject(new Error(error));
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let count = 0;
  const wait = <Result>(id: string): Promise<Result> =>
    new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  const call = <Result>(kind: string, fields: object = {}): Promise<Result> => {
    const id = `${count++}`;
    const result = wait<Result>(id);
    send(child, { id, kind, ...fields });
    return result;
  };
  await wait('ready');
  return {
    put: (record) => call('put', { record, notes: notes() }),
    addFeedback: (input) => call('feedback', { input }),
    health: () => call('health'),
    longestDelayMs: () => call('delay'),
    async close() {
      await call('close');
      await ended;
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

function send(child: ChildProcess, message: object): void {
  if (child.connected) child.send(message, () => {});
}
