// `searchloop serve` as a process of its own, and the hand on its loop.

import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '#searchloop/config/index.js';
import type { LoopStatus } from '#searchloop/loop/index.js';
import type { ServedPlace } from './served-place.js';

/** A version that went live, as the server's log tells it; milliseconds since 1970. */
export interface Swap {
  readonly version: string;
  readonly began: number;
  readonly ended: number;
}

export interface LoopServer {
  readonly url: string;
  readonly swaps: readonly Swap[];
  status(): Promise<LoopStatus>;
  order(name: 'pause' | 'resume' | 'step' | 'rollback', body?: object): Promise<LoopStatus>;
  /** Ends it as an operator would. */
  stop(): Promise<void>;
}

/** With a real model and its index a server listens after some ten seconds. */
const START_MS = 180_000;

export async function startServer({
  settingsFile,
  folder,
  keys,
}: Omit<ServedPlace<never>, 'asked'>): Promise<LoopServer> {
  const child = spawn(
    process.execPath,
    [join(packageRoot, 'dist', 'main.js'), 'serve', '--json', '--config', settingsFile],
    // In a group of its own: Ctrl-C is for us, who end it as an operator would.
    { stdio: ['ignore', 'pipe', 'pipe'], detached: true },
  );
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));
  const swaps: Swap[] = [];
  follow(child, join(folder, 'server.log'), swaps);
  const url = await addressOf(child);
  const admin = async (method: string, path: string, body?: object): Promise<LoopStatus> => {
    const answer = await fetch(`${url}/admin/loop${path}`, {
      method,
      headers: { authorization: `Bearer ${keys.admin}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`/admin/loop${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as LoopStatus;
  };
  const server: LoopServer = {
    url,
    swaps,
    status: () => admin('GET', ''),
    order: (name, body = {}) => admin('POST', `/${name}`, body),
    stop: () => stopProcess(child),
  };
  try {
    // Until it has read its keys, it lets nobody in.
    for (let tries = 0; tries < 100; tries++)
      if ((await fetch(`${url}/readyz`)).ok && (await server.status().catch(() => null)) !== null)
        return server;
      else await sleep(100);
    throw new Error('the server has no loop; see its log');
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** Its log goes into a file; what it says of swaps is kept. */
function follow(child: ChildProcess, path: string, swaps: Swap[]): void {
  const file = createWriteStream(path, { flags: 'a' });
  createInterface({ input: child.stderr! }).on('line', (text) => {
    file.write(`${text}\n`);
    if (!text.includes('"swapBegan"')) return;
    const { version, swapBegan, swapEnded } = JSON.parse(text);
    swaps.push({ version, began: swapBegan, ended: swapEnded });
  });
  // Its last lines come after its end.
  child.once('close', () => file.end());
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}; see its log`)));
    const wait = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the server did not listen within ${START_MS / 1000} s; see its log`));
    }, START_MS).unref();
    createInterface({ input: child.stdout! }).on('line', (text) => {
      if (!text.startsWith('{"url"')) return;
      clearTimeout(wait);
      resolve((JSON.parse(text) as { url: string }).url);
    });
  });
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.removeAllListeners('exit');
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}
