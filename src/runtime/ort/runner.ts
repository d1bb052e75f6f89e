// Threads that only run. A run blocks its thread; with runners a thread can have several runs under way.

import { UnavailableError } from '../../errors.js';
import type { Runner } from '../session.js';
import { startWorker, type WorkerClient } from '../workers/client.js';
import type { Method } from '../workers/messages.js';
import type { Handle } from './api.js';

/** Addresses of onnxruntime's objects. The caller keeps them, and the memory they are bound to, until the call ends. */
export interface Run {
  readonly session: Handle;
  readonly runOptions: Handle;
  readonly binding: Handle;
}

export interface RunnerMethods {
  run: Method<Run, void>;
}

const clients = new WeakMap<Runner, WorkerClient<RunnerMethods>>();

/** Starts a thread with the priority of the calling one. */
export async function startRunner(): Promise<Runner> {
  // A run that a dead thread was in the middle of cannot be told from one that never began: no second start.
  const client = await startWorker<RunnerMethods>('runtime/ort/runner-thread', null, { restart: false });
  const runner: Runner = { close: () => client.close() };
  clients.set(runner, client);
  return runner;
}

/** @throws {UnavailableError} the runner is closed, died, or is of another kind of runtime */
export async function runOn(runner: Runner, run: Run): Promise<void> {
  const client = clients.get(runner);
  if (client === undefined) throw new UnavailableError('the runner is of another kind of runtime');
  await client.call('run', run);
}
