// Work that one process at a time should do, shown by a file or folder whose name holds host and process id. A claim
// whose owner is gone is found and taken over by a rename, which only one taker wins, with what lies in it.
// Whether an owner lives is seen by watching: it touches its claim all the time. What the wall clock says of the last
// touch proves nothing, since clocks are set, machines sleep, and two hosts have two of them.
// Claims save work; they are not what keeps files right: a file is checked and renamed into place whole.

import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError } from '../../errors.js';
import { isRunning } from '../../util/is-running.js';

/** An owner shows that it lives by touching its claim; who does not, while one looks on for so long, is gone. */
const STALE_MS = 60_000;
/** Touches within that time. */
const HEARTBEATS = 12;
/** Part of that time that is enough where the last touch seems to be long ago. */
const LONG_AGO_SHARE = 1 / 4;
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
  /** Called once when another process has the work and may live. */
  readonly onWait?: () => void;
  /** Called once when the claim is gone though it was not given back: another process took this one for dead. */
  readonly onLost?: () => void;
  /** Default: a minute. The same for all who want the work. */
  readonly staleMs?: number;
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
  const { folder, key, signal, staleMs = STALE_MS } = options;
  const watch = new Watch(staleMs);
  const mayLive = (claim: Sighting): boolean => ownerMayLive(claim, () => !watch.isQuiet(claim));
  for (let told = false; ; ) {
    if (signal?.aborted) throw new CancelledError();
    if (await options.isDone()) return null;
    // Somebody may move it away while one waits.
    await mkdir(folder, { recursive: true });
    const found = await findClaims(folder, key, mayLive);
    if (!found.some(({ live }) => live)) {
      const taken = await take(options, found);
      // Shown first, then looked again: of two that come at once, at least one sees the other and steps back.
      const others = await findClaims(folder, key, mayLive);
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

async function take(
  { folder, key, kind, onLost, staleMs = STALE_MS }: ClaimOptions,
  orphans: readonly Found[],
): Promise<Claim> {
  const name = nameOf(key, process.pid);
  const path = join(folder, name);
  ownClaims.add(name);
  if (!(await takeOver(folder, path, orphans))) {
    if (kind === 'folder') await mkdir(path);
    else await (await open(path, 'wx')).close();
  }
  let isHeld = true;
  const touch = async (): Promise<void> => {
    const now = new Date();
    try {
      await utimes(path, now, now);
    } catch (error) {
      // A disk that fails for a while takes nothing away.
      if (!isHeld || (error as NodeJS.ErrnoException).code !== 'ENOENT') return;
      isHeld = false;
      clearInterval(heartbeat);
      onLost?.();
    }
  };
  const heartbeat = setInterval(touch, staleMs / HEARTBEATS);
  heartbeat.unref();
  await touch();
  return {
    path,
    release: async (remove) => {
      isHeld = false;
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

interface Sighting {
  readonly name: string;
  /** Of its owner. */
  readonly host: string;
  readonly pid: number;
  /** Last touch, by the owner's clock. */
  readonly touched: number;
}

async function findClaims(
  folder: string,
  key: string,
  mayLive: (claim: Sighting) => boolean,
): Promise<Found[]> {
  const found: Found[] = [];
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${key}.`)) continue;
    const [, owner, pid] = OWNER.exec(name.slice(key.length + 1)) ?? [];
    if (owner === undefined) continue;
    const status = await stat(join(folder, name)).catch(() => null);
    if (!status) continue;
    const claim = { name, host: owner, pid: Number(pid), touched: status.mtimeMs };
    found.push({ name, size: status.size, live: mayLive(claim) });
  }
  return found;
}

/** A process id of this host is asked for, but it may be another process's by now; of a foreign host (shared folder, container) only touches tell. */
function ownerMayLive(claim: Sighting, isTouched: () => boolean): boolean {
  if (claim.pid === NOBODY) return false;
  if (claim.host !== host) return isTouched();
  if (claim.pid === process.pid) return ownClaims.has(claim.name);
  return isRunning(claim.pid) && isTouched();
}

const seemsFresh = ({ touched }: Sighting, staleMs: number): boolean =>
  Math.abs(Date.now() - touched) < staleMs;

/** Looks on, by a clock that nobody sets and that stands still while the machine sleeps. */
class Watch {
  readonly #seen = new Map<string, { touched: number; since: number; patienceMs: number }>();

  constructor(private readonly staleMs: number) {}

  /** Whether nobody has touched it for long enough under our eyes. */
  isQuiet(claim: Sighting): boolean {
    const now = performance.now();
    const seen = this.#seen.get(claim.name);
    if (seen?.touched === claim.touched) return now - seen.since > seen.patienceMs;
    // One that was touched under our eyes has an owner, whatever its times say.
    const isLongAgo = seen === undefined && !seemsFresh(claim, this.staleMs);
    const patienceMs = this.staleMs * (isLongAgo ? LONG_AGO_SHARE : 1);
    this.#seen.set(claim.name, { touched: claim.touched, since: now, patienceMs });
    return false;
  }
}

/** Removes what dead processes left for work that is done by now: a look is enough, since nothing is lost by a mistake. */
export async function removeOrphans(folder: string, key: string): Promise<void> {
  const mayLive = (claim: Sighting): boolean => ownerMayLive(claim, () => seemsFresh(claim, STALE_MS));
  const found = await findClaims(folder, key, mayLive).catch(() => []);
  for (const { name, live } of found)
    if (!live) await rm(join(folder, name), { recursive: true, force: true });
}
