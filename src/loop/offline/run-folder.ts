// The folder of a training run: run.json, checkpoints/, metrics.jsonl.

import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { IntegrityError, InvalidInputError } from '../../errors.js';
import { type Checkpoint, listCheckpoints, pruneCheckpoints } from '../../training/index.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import { readJsonFile, writeJsonFile } from '../../util/json-file.js';
import { type Claim, claim } from '../../weights/index.js';

/** What decides the outcome of a run; a run goes on with the same or not at all. */
export type RunIdentity = Readonly<Record<string, unknown>>;

export interface RunFolder {
  readonly folder: string;
  readonly checkpoints: string;
  readonly metrics: string;
  readonly configDigest: string;
  /** Where the run goes on; null begins anew. */
  readonly from: Checkpoint | null;
  /** Whether it is still this process's. */
  isHeld(): Promise<boolean>;
  /** Gives the folder back. */
  release(): Promise<void>;
}

export interface OpenRunOptions {
  readonly identity: RunIdentity;
  /** Said by the user: a folder that holds a run is not begun anew by mistake. */
  readonly resume: boolean;
  /** Keys of an identity, also of one that an earlier build wrote, that may differ. */
  readonly free?: readonly string[];
  readonly onNote?: (line: string) => void;
  /** Another process has the folder and may live: this one waits for its end. */
  readonly onWait?: (reason: string) => void;
  /** Another process took this one for dead and has the folder now. */
  readonly onLost?: () => void;
  readonly signal?: AbortSignal;
}

const runSchema = z.strictObject({
  formatVersion: z.literal(1),
  configDigest: z.string(),
  identity: z.record(z.string(), z.unknown()),
});

/**
 * Takes a run's folder, one process at a time.
 * @throws {InvalidInputError} it holds a run and `resume` is not set, or the run began with other settings
 * @throws {IntegrityError} all checkpoints of its run are damaged: nothing is overwritten
 */
export async function openRun(folder: string, options: OpenRunOptions): Promise<RunFolder> {
  const held = await claimRun(folder, options);
  try {
    return await openHeld(folder, options, held);
  } catch (error) {
    await held.release(true);
    throw error;
  }
}

/**
 * The folder is this process's from then on; it is made where there is none.
 * @throws {CancelledError} on abort
 */
export function claimRun(
  folder: string,
  options: Pick<OpenRunOptions, 'onNote' | 'onWait' | 'onLost' | 'signal'>,
): Promise<Claim> {
  return claim({
    folder,
    key: '.running',
    kind: 'file',
    onWait: () => {
      const reason = `another process trains in ${folder}; waiting for it to end`;
      options.onNote?.(reason);
      options.onWait?.(reason);
    },
    ...(options.onLost === undefined ? {} : { onLost: options.onLost }),
    signal: options.signal,
  });
}

async function openHeld(folder: string, options: OpenRunOptions, held: Claim): Promise<RunFolder> {
  const checkpoints = join(folder, 'checkpoints');
  const { checkpoints: whole, faults } = await listCheckpoints(checkpoints);
  for (const { reason } of faults) options.onNote?.(`ignored: ${reason}`);
  const from = whole.at(-1) ?? null;
  const lost = faults.filter(({ folder: at }) => basename(at).startsWith('step-'));
  if (from === null && lost.length > 0)
    throw new IntegrityError(
      `${folder} holds a run without a whole checkpoint (${lost.map(({ reason }) => reason).join('; ')}): restore one, or choose another folder`,
    );
  const configDigest = sha256Hex(canonicalJson(options.identity));
  const path = join(folder, 'run.json');
  if (from !== null) {
    if (!options.resume)
      throw new InvalidInputError(
        `${folder} holds a run at step ${from.manifest.step}: add --resume, or choose another folder`,
        'output',
      );
    await checkIdentity(path, options);
    await pruneCheckpoints(checkpoints, { keepLast: Number.POSITIVE_INFINITY, keep: [] });
  } else {
    const run = { formatVersion: 1, configDigest, identity: options.identity };
    await writeJsonFile(path, run);
  }
  const metrics = join(folder, 'metrics.jsonl');
  return {
    folder,
    checkpoints,
    metrics,
    configDigest,
    from,
    isHeld: () =>
      stat(held.path).then(
        () => true,
        (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
      ),
    release: () => held.release(true),
  };
}

async function checkIdentity(path: string, { identity, free = [] }: OpenRunOptions): Promise<void> {
  const { identity: begun } = await readJsonFile(path, runSchema);
  const [before, now] = [flat(begun, free), flat(identity, free)];
  const [olderLacks, newerLacks] = [missingIn(before, now), missingIn(now, before)];
  if (olderLacks.length > 0 || newerLacks.length > 0)
    throw new InvalidInputError(
      `${path} was written by another version of searchloop, ${[
        ...(olderLacks.length > 0 ? [`which did not note ${olderLacks.join(', ')}`] : []),
        ...(newerLacks.length > 0 ? [`whose ${newerLacks.join(', ')} this one does not know`] : []),
      ].join(
        ' and ',
      )}: nobody can tell whether it would be the same run. Begin a new one, with --adapter from the last checkpoint of this one if you like`,
      'resume',
    );
  const changed = [...now].filter(([key, value]) => before.get(key) !== value);
  if (changed.length > 0)
    throw new InvalidInputError(
      `the run began with other settings and would not be the same run:\n  ${changed
        .map(([key, value]) => `${key}: ${before.get(key)}, now ${value}`)
        .join('\n  ')}`,
      'resume',
    );
}

/** Settings by their path, as JSON: groups of settings one by one, what lies deeper as a whole. */
function flat(identity: RunIdentity, free: readonly string[]): Map<string, string> {
  const isGroup = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  return new Map(
    Object.entries(identity)
      .filter(([key]) => !free.includes(key))
      .flatMap(([key, value]) =>
        isGroup(value)
          ? Object.entries(value).map(([name, item]) => [`${key}.${name}`, canonicalJson(item)] as const)
          : [[key, canonicalJson(value)] as const],
      ),
  );
}

const missingIn = (there: ReadonlyMap<string, string>, here: ReadonlyMap<string, string>): string[] =>
  [...here.keys()].filter((key) => !there.has(key));
