// `searchloop serve` as a process group of its own, so that a kill takes all of it.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '#searchloop/config/index.js';
import { addressOf, SEARCHLOOP, sets } from '../searchloop.js';
import { until } from './until.js';

export interface ServerProcess {
  /** Address, when it answers; rejects where it ends before. */
  readonly ready: Promise<string>;
  /** Milliseconds from its start to `ready`. */
  startMs(): number;
  /** kill -9 of the whole group. */
  kill(): Promise<void>;
  /** A clean end. @returns exit code */
  stop(): Promise<number | null>;
  /** Ends a thread at its next look. @returns whether there was one, within 2 s */
  killThread(name: ThreadName): Promise<boolean>;
  /** Longest delay of the event loop between two times of `monotonicNow`, milliseconds. */
  longestDelayMs(since: number, until: number): number;
}

/** The store's, the engine's, and one of those that train. */
export type ThreadName = 'store' | 'engine' | 'trainer';

export interface ServerOptions {
  readonly flags: Readonly<Record<string, unknown>>;
  readonly environment?: Readonly<Record<string, string>>;
  /** Folder for its log and the probe's files. */
  readonly folder: string;
}

/** Within it a thread looks whether it shall end, busy as it may be. */
const THREAD_LOOK_MS = 2000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) killGroup(child);
});

export function startServer({ flags, environment = {}, folder }: ServerOptions): ServerProcess {
  const delays = join(folder, 'delays');
  const die = join(folder, 'die');
  rmSync(delays, { force: true });
  const log = openSync(join(folder, 'server.log'), 'a');
  const begun = performance.now();
  let took = Number.NaN;
  const probe = pathToFileURL(join(packageRoot, 'dist', 'bench', 'faults', 'probe.js')).href;
  const child = spawn(
    process.execPath,
    ['--import', probe, SEARCHLOOP, 'serve', '--port', '0', ...sets(flags)],
    {
      stdio: ['ignore', 'pipe', log],
      detached: true,
      env: { ...process.env, ...environment, FAULT_DELAYS: delays, FAULT_DIE: die },
    },
  );
  closeSync(log);
  running.add(child);
  const ended = new Promise<number | null>((resolve) =>
    child.once('exit', (code) => {
      running.delete(child);
      resolve(code);
    }),
  );
  const ready = addressOf(child, join(folder, 'server.log')).then(
    (url) => {
      took = performance.now() - begun;
      return url;
    },
    (error: Error) => {
      killGroup(child);
      throw error;
    },
  );
  ready.catch(() => {});
  return {
    ready,
    startMs: () => took,
    async kill() {
      killGroup(child);
      await ended;
    },
    async stop() {
      child.kill('SIGTERM');
      return ended;
    },
    killThread(name) {
      const order = `${die}.${name}`;
      writeFileSync(order, '');
      return until(() => !existsSync(order), THREAD_LOOK_MS).finally(() => rmSync(order, { force: true }));
    },
    longestDelayMs(since, until) {
      const lines = existsSync(delays) ? readFileSync(delays, 'utf8').trim().split('\n') : [];
      const values = lines
        .map((line) => line.split(' ').map(Number))
        .filter(([at = 0]) => at >= since && at <= until);
      return Math.max(0, ...values.map(([, ms]) => ms ?? 0));
    },
  };
}

function killGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

export interface Readiness {
  readonly status: 'ready' | 'degraded' | 'not ready';
  readonly reasons?: readonly string[];
}

export async function readiness(url: string): Promise<Readiness> {
  return (await (await fetch(`${url}/readyz`)).json()) as Readiness;
}
