// The folder of a training run: run.json, checkpoints/, metrics.jsonl.

import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { FileFormatError, InvalidInputError } from '../../errors.js';
import { type Checkpoint, listCheckpoints, pruneCheckpoints } from '../../training/index.js';
import { writeFileAtomic } from '../../util/atomic-file.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
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
  /** Gives the folder back. */
  release(): Promise<void>;
}

export interface OpenRunOptions {
  readonly identity: RunIdentity;
  /** Said by the user: a folder that holds a run is not begun anew by mistake. */
  readonly resume: boolean;
  readonly onNote?: (line: string) => void;
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
 */
export async function openRun(folder: string, options: OpenRunOptions): Promise<RunFolder> {
  await mkdir(folder, { recursive: true });
  const held = await claim({
    folder,
    key: '.running',
    kind: 'file',
    onWait: () => options.onNote?.(`another process trains in ${folder}; waiting for it to end`),
    signal: options.signal,
  });
  try {
    return await openHeld(folder, options, held);
  } catch (error) {
    await held.release(true);
    throw error;
  }
}

async function openHeld(folder: string, options: OpenRunOptions, held: Claim): Promise<RunFolder> {
  const checkpoints = join(folder, 'checkpoints');
  const { checkpoints: whole, faults } = await listCheckpoints(checkpoints);
  for (const { reason } of faults) options.onNote?.(`ignored: ${reason}`);
  const from = whole.at(-1) ?? null;
  const configDigest = sha256Hex(canonicalJson(options.identity));
  const path = join(folder, 'run.json');
  if (from !== null) {
    if (!options.resume)
      throw new InvalidInputError(
        `${folder} holds a run at step ${from.manifest.step}: add --resume, or choose another folder`,
        'output',
      );
    await checkIdentity(path, options.identity);
    await pruneCheckpoints(checkpoints, { keepLast: Number.POSITIVE_INFINITY, keep: [] });
  } else {
    const run = { formatVersion: 1, configDigest, identity: options.identity };
    await writeFileAtomic(path, `${JSON.stringify(run, null, 2)}\n`);
  }
  const metrics = join(folder, 'metrics.jsonl');
  return { folder, checkpoints, metrics, configDigest, from, release: () => held.release(true) };
}

async function checkIdentity(path: string, identity: RunIdentity): Promise<void> {
  let begun: RunIdentity;
  try {
    begun = runSchema.parse(JSON.parse(await readFile(path, 'utf8'))).identity;
  } catch (cause) {
    throw new FileFormatError(`${path}: ${(cause as Error).message}`, { cause });
  }
  const changed = [...new Set([...Object.keys(begun), ...Object.keys(identity)])]
    .filter((key) => canonicalJson(begun[key]) !== canonicalJson(identity[key]))
    .map((key) => `${key}: ${canonicalJson(begun[key])}, now ${canonicalJson(identity[key])}`);
  if (changed.length > 0)
    throw new InvalidInputError(
      `the run began with other settings and would not be the same run:\n  ${changed.join('\n  ')}`,
      'resume',
    );
}
