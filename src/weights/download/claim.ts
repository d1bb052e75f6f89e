// Places in the cache where one process puts together what it fetches. A claim is a name that holds host and
// process id, so a claim whose owner is gone is found and taken over by a rename, which only one taker wins.
// Claims save work; they are not what keeps files right: a file is checked and renamed into place whole.

import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError } from '../../errors.js';

/** An owner shows that it lives by touching its claim; older than this it is taken over. */
const STALE_MS = 60_000;
const HEARTBEAT_MS = 5_000;
const POLL_MS = 300;

const SUFFIX = '.partial';
const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
const ownClaims = new Set<string>();

export interface Claim {
  /** Path reserved for this process; what a dead owner left lies there, else nothing. */
  readonly path: string;
  /** Stops showing life. Keeps the partial content for the next try unless `remove` is set. */
  release(remove: boolean): Promise<void>;
}

interface Found {
  readonly name: string;
  readonly live: boolean;
  readonly size: number;
}

/**
 * Claims the work named `key`, or waits while another living process does it.
 * @returns null when `isDone` came true first
 * @throws {CancelledError} on abort
 */
export async function claim(options: {
  readonly folder: string;
  readonly key: string;
  readonly isDone: () => Promise<boolean>;
  readonly onWait?: () => void;
  readonly signal?: AbortSignal;
}): Promise<Claim | null> {
  const { folder, key, isDone, signal } = options;
  await mkdir(folder, { recursive: true });
  for (let waited = false; ; waited = true) {
    if (signal?.aborted) throw new CancelledError();
    if (await isDone()) return null;
    const found = await findClaims(folder, key);
    if (!found.some(({ live }) => live)) return await take(folder, key, found);
    if (!waited) options.onWait?.();
    await sleep(POLL_MS);
  }
}

async function take(folder: string, key: string, orphans: readonly Found[]): Promise<Claim> {
  const name = `${key}.${host}.${process.pid}.${randomBytes(4).toString('hex')}${SUFFIX}`;
  const path = join(folder, name);
  ownClaims.add(name);
  for (const orphan of [...orphans].sort((a, b) => b.size - a.size)) {
    try {
      await rename(join(folder, orphan.name), path);
      break;
    } catch {
      // Another process was quicker; the next orphan, or none.
    }
  }
  const heartbeat = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => {});
  }, HEARTBEAT_MS);
  heartbeat.unref();
  return {
    path,
    release: async (remove) => {
      clearInterval(heartbeat);
      if (remove) await rm(path, { recursive: true, force: true });
      ownClaims.delete(name);
    },
  };
}

async function findClaims(folder: string, key: string): Promise<Found[]> {
  const found: Found[] = [];
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${key}.`) || !name.endsWith(SUFFIX)) continue;
    const status = await stat(join(folder, name)).catch(() => null);
    if (!status) continue;
    const [owner, pid] = name.slice(key.length + 1).split('.');
    const fresh = Date.now() - status.mtimeMs < STALE_MS;
    found.push({ name, size: status.size, live: isLive(name, owner, Number(pid), fresh) });
  }
  return found;
}

/** A process id of this host is asked for; of a foreign host (shared folder, container) only the touch counts. */
function isLive(name: string, owner: string | undefined, pid: number, fresh: boolean): boolean {
  if (owner !== host) return fresh;
  if (pid === process.pid) return ownClaims.has(name);
  return fresh && processExists(pid);
}

function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Removes what dead processes left for work that is done by now. */
export async function removeOrphans(folder: string, key: string): Promise<void> {
  const found = await findClaims(folder, key).catch(() => []);
  for (const { name, live } of found)
    if (!live) await rm(join(folder, name), { recursive: true, force: true });
}
