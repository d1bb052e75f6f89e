// Exact match of published versions on the fixed probe questions, greedy; each is measured once.

import { readFileSync } from 'node:fs';
import { cp, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import {
  loopFolder,
  type Receipt,
  readLoopState,
  receiptDocument,
  type StepReceipt,
} from '#searchloop/loop/index.js';
import { openTrajectoryStore } from '#searchloop/trajectory/index.js';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import { type TinyFigures, tinyFigures } from '../tiny-world/figures.js';
import { openTinyHouse } from '../tiny-world/house.js';
import type { LoopPlace } from './place.js';
import type { ServedPlace } from './served-place.js';

type Place = Pick<ServedPlace<never>, 'folder' | 'data'>;

export interface PublishedVersion extends TinyFigures {
  readonly version: string;
  /** In the order of publication; the start first. */
  readonly place: number;
  /** Milliseconds since 1970; 0 for the start. */
  readonly publishedAt: number;
  /** Training steps of the candidate. */
  readonly steps: number;
}

export interface Known {
  readonly version: string;
  readonly publishedAt: number;
  readonly steps: number;
}

/** All versions that were ever let out, the one that the loop began with first. */
export async function publishedVersions(place: LoopPlace): Promise<PublishedVersion[]> {
  const known = await receipts(place);
  const file = join(place.folder, 'versions.json');
  const measured = readMeasured(file);
  await keepVersions(place);
  const folder = keptFolder(place);
  const there = new Set(await readdir(folder).catch(() => []));
  const house = await openTinyHouse(place.tiny, place.tiny.config({ 'engine.maxSequences': 32 }));
  try {
    for (const { version } of known) {
      if (measured[version] !== undefined) continue;
      if (version !== 'base' && !there.has(version))
        throw new Error(`version ${version} is not in ${folder}`);
      if (version !== 'base')
        await house.engine.loadAdapter('measured', join(folder, version), { replace: true });
      measured[version] = await tinyFigures(
        house,
        { index: 'all', topK: 3, questions: place.probe },
        version === 'base' ? null : version,
      );
      await writeFileAtomic(file, `${JSON.stringify(measured)}\n`);
    }
  } finally {
    await house.close();
  }
  return known.map((item, at) => ({ ...(measured[item.version] as TinyFigures), ...item, place: at }));
}

export const keptFolder = ({ folder }: Pick<Place, 'folder'>): string => join(folder, 'versions');

/** Copies what is there: a version that was rolled back is removed some time later, and shall be measured all the same. */
export async function keepVersions(place: Place): Promise<void> {
  const from = join(loopFolder(place.data), 'versions');
  const to = keptFolder(place);
  const kept = new Set(await readdir(to).catch(() => []));
  for (const name of await readdir(from).catch(() => []))
    if (!name.startsWith('.') && !kept.has(name)) {
      await cp(join(from, name), join(to, `.${name}`), { recursive: true, force: true });
      await rename(join(to, `.${name}`), join(to, name));
    }
}

function readMeasured(file: string): Record<string, TinyFigures> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, TinyFigures>;
  } catch {
    return {};
  }
}

/** From the receipts in the store: also those that were rolled back. */
export async function receipts({ data }: Pick<Place, 'data'>): Promise<Known[]> {
  const store = openTrajectoryStore({
    storage: { kind: 'sqlite', path: join(data, 'trajectories.db') },
    retry: false,
  });
  try {
    const state = await readLoopState(store);
    const start: Known = { version: state?.start ?? 'base', publishedAt: 0, steps: 0 };
    const found: Known[] = [];
    for (const { digest } of await store.adapters()) {
      const receipt = (await store.readDocument(receiptDocument(digest))) as Receipt | null;
      if (receipt !== null)
        found.push({ version: digest, publishedAt: receipt.publishedAt, steps: receipt.steps.length });
    }
    return [start, ...found.sort((a, b) => a.publishedAt - b.publishedAt)];
  } finally {
    await store.close();
  }
}

/** Mean reward of the rollouts of each step that changed the policy, in the order of steps. */
export async function stepRewards({ data }: Pick<Place, 'data'>): Promise<number[]> {
  const store = openTrajectoryStore({
    storage: { kind: 'sqlite', path: join(data, 'trajectories.db') },
    retry: false,
  });
  try {
    const steps = (await store.adapters()).map(({ receipt }) => receipt as StepReceipt);
    return steps.sort((a, b) => a.step - b.step).map(({ metrics }) => metrics.reward ?? Number.NaN);
  } finally {
    await store.close();
  }
}

/** Stored answers whose tokens come from more than one version. */
export async function mixedRecords({
  data,
}: Pick<Place, 'data'>): Promise<{ records: number; mixed: number }> {
  const store = openTrajectoryStore({
    storage: { kind: 'sqlite', path: join(data, 'trajectories.db') },
    retry: false,
  });
  let [records, mixed, cursor] = [0, 0, 0];
  try {
    for (;;) {
      const heads = await store.list({ source: 'serve' }, { cursor, limit: 500, order: 'oldest' });
      const last = heads.at(-1);
      if (last === undefined) return { records, mixed };
      cursor = last.sequence;
      for (const { record } of await store.read(heads.map(({ id }) => id))) {
        records++;
        if (new Set(record.versions.map(({ adapterVersion }) => adapterVersion)).size > 1) mixed++;
      }
    }
  } finally {
    await store.close();
  }
}
