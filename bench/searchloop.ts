// The built command line, which benchmarks run as a process of its own.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '#searchloop/config/index.js';

/** The script that Node.js runs. */
export const SEARCHLOOP = join(packageRoot, 'dist', 'main.js');

/** Flags of these settings, each as `section.key`. */
export const sets = (settings: Readonly<Record<string, unknown>>): string[] =>
  Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${JSON.stringify(value)}`]);

/** With a real model and its index a server answers after some ten seconds. */
const START_MS = 180_000;

/**
 * Address of a server that was just started, its standard output piped.
 * @param log  where it says why it did not start
 * @throws {Error} it ended, or took too long: then it still runs
 */
export function addressOf(server: ChildProcess, log: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const wait = setTimeout(() => {
      reject(new Error(`the server did not answer within ${START_MS / 1000} s; see ${log}`));
    }, START_MS).unref();
    server.once('exit', (code) => {
      clearTimeout(wait);
      reject(new Error(`the server ended with ${code}; see ${log}`));
    });
    createInterface({ input: server.stdout! }).on('line', (line) => {
      const url = /answers on (\S+)/.exec(line)?.[1];
      if (url === undefined) return;
      clearTimeout(wait);
      resolve(url);
    });
  });
}

/** Ends a process as an operator would; resolves when it has ended. */
export async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}
