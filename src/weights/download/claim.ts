// Work that one process at a time should do, shown by a file or folder whose name holds host and process id. A claim
// whose owner is gone is found and taken over by a rename, which only one taker wins, with what lies in it.
// Claims save work; they are not what keeps files right: a file is checked and renamed into place whole.

import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError } from '../../errors.js';

/** An owner shows that it lives by touching its claim; older than this it is taken over. */
const STALE_MS = 60_000;
const HEARTBEAT_MS = 5_000;
const POLL_MS = 200;

const SUFFIX = '.partial';
/** What follows the key: host, process id, a random part. A key may hold points of its own. */
const OWNER = /^([0-9a-f]{8})\.(\d+)\.[0-9a-f]{8}\.partial$/;
/** In place of a process id: given back with content that the next owner may use. */
const NOBODY = 0;
const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
const ownClaims = new Set<string>();

export interface Claim {
  /** The file or folder; what the last owner left lies in it. */
  readonly path: string;
  /** Gives the work back; what lies there is kept for the next owner unless `remove` is set. */
  release(remove: boolean): Promise<void>;
}

export interface ClaimOptions {
  /** Folder of the claims; made when absent. */
  readonly folder: string;
  /** Name of the work; a plain file name. */
  readonly key: string;
  readonly kind: 'file' | 'folder';
  /** Asked before each try; the work may be done by another process meanwhile. */
  readonly isDone?: () => Promise<boolean>;
  /** Called once when another living process has the work. */
  readonly onWait?: () => void;
  readonly signal?: AbortSignal | undefined;
}

interface Found {
  readonly name: string;
  readonly live: boolean;
  readonly size: number;
}

/**
 * Claims work without a point at which it can be found done.
 * @throws {CancelledError} on abort
 */
export async function claim(options: Omit<ClaimOptions, 'isDone'>): Promise<Claim> {
  return (await claimUnlessDone({ ...options, isDone: async () => false })) as Claim;
}

/**
 * Claims work, or waits while another living process does it.
 * @returns null when `isDone` came true first
 * @throws {CancelledError} on abort
 */
export async function claimUnlessDone(
  options: ClaimOptions & { readonly isDone: () => Promise<boolean> },
): Promise<Claim | null> {
  const { folder, key, signal } = options;
  await mkdir(folder, { recursive: true });
  for (let told = false; ; ) {
    if (signal?.aborted) throw new CancelledError();
    if (await options.isDone()) return null;
    const found = await findClaims(folder, key);
    if (!found.some(({ live }) => live)) {
      const taken = await take(options, found);
      // Shown first, then looked again: of two that come at once, at least one sees the other and steps back.
      const others = await findClaims(folder, key);
      if (!others.some(({ name, live }) => live && join(folder, name) !== taken.path)) return taken;
      await taken.release(false);
    } else if (!told) {
      told = true;
      options.onWait?.();
    }
    await sleep(POLL_MS * (0.5 + Math.random()));
  }
}

const nameOf = (key: string, owner: number): string =>
  `${key}.${host}.${owner}.${randomBytes(4).toString('hex')}${SUFFIX}`;

async function take({ folder, key, kind }: ClaimOptions, orphans: readonly Found[]): Promise<Claim> {
  const name = nameOf(key, process.pid);
  const path = join(folder, name);
  ownClaims.add(name);
  if (!(await takeOver(folder, path, orphans))) {
    if (kind === 'folder') await mkdir(path);
    else await (await open(path, 'wx')).close();
  }
  const touch = (): Promise<void> => {
    const now = new Date();
    return utimes(path, now, now).catch(() => {});
  };
  await touch();
  const heartbeat = setInterval(touch, HEARTBEAT_MS);
  heartbeat.unref();
  return {
    path,
    release: async (remove) => {
      clearInterval(heartbeat);
      if (remove) await rm(path, { recursive: true, force: true });
      else await rename(path, join(folder, nameOf(key, NOBODY))).catch(() => {});
      ownClaims.delete(name);
    },
  };
}

/** The fullest orphan first. */
async function takeOver(folder: string, path: string, orphans: readonly Found[]): Promise<boolean> {
  for (const { name } of [...orphans].sort((a, b) => b.size - a.size)) {
    try {
      await rename(join(folder, name), path);
      return true;
    } catch {
      // Another process was quicker; the next orphan, or none.
    }
  }
  return false;
}

async function findClaims(folder: string, key: string): Promise<Found[]> {
  const found: Found[] = [];
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${key}.`)) continue;
    const parts = OWNER.exec(name.slice(key.length + 1));
    if (!parts) continue;
    const status = await stat(join(folder, name)).catch(() => null);
    if (!status) continue;
    const fresh = Date.now() - status.mtimeMs < STALE_MS;
    found.push({ name, size: status.size, live: isLive(name, parts[1], Number(parts[2]), fresh) });
  }
  return found;
}

/** A process id of this host is asked for; of a foreign host (shared folder, container) only the touch counts. */
function isLive(name: string, owner: string | undefined, pid: number, fresh: boolean): boolean {
  if (pid === NOBODY) return false;
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
