// Whether the loop went on where it was: its state, the ledger in the store and the folders on disk agree, and nothing
// that was seen before a kill is gone.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '#searchloop/storage/index.js';
import { storeFile } from './check.js';

export interface SeenLoop {
  readonly state: string;
  readonly paused_for: string | null;
  readonly last_error: string | null;
  readonly step: number;
  readonly live: string;
  readonly start: string;
  readonly counts: { readonly published: number; readonly refused: number };
}

/** Null where the server runs without a loop, or is gone. */
export async function seeLoop(url: string): Promise<SeenLoop | null> {
  const response = await fetch(`${url}/admin/loop`);
  return response.status === 200 ? ((await response.json()) as SeenLoop) : null;
}

interface Step {
  readonly digest: string;
  readonly parent_digest: string | null;
  readonly receipt: string;
  readonly deleted_members: number;
}

interface StoredState {
  readonly name: string;
  readonly step: number;
  readonly live: string;
  readonly start: string;
  readonly ledger: {
    readonly version: string;
    readonly checkpoint: string;
    readonly trainerStep: number;
  } | null;
  readonly published: readonly { readonly version: string }[];
}

/**
 * @param before  what was last seen before the kill
 * @param now  what the new server says
 */
export function loopFaults(data: string, before: SeenLoop | null, now: SeenLoop): string[] {
  const faults = faultsOf(data, before, now);
  // The loop is at work meanwhile, and commits between two looks: what is wrong is wrong at the second look too.
  return faults.length === 0 ? faults : faultsOf(data, before, now);
}

function faultsOf(data: string, before: SeenLoop | null, now: SeenLoop): string[] {
  const database = openDatabase(storeFile(data), { readonly: true });
  try {
    const text = database.prepare("select value from documents where name = 'loop'").pluck().get();
    const steps = database.prepare<[], Step>('select * from adapters').all();
    const members = database
      .prepare(
        `select count(*) from adapter_members m left join trajectories t on t.id = m.trajectory_id where t.id is null`,
      )
      .pluck()
      .get() as number;
    const state = JSON.parse(text as string) as StoredState;
    return [
      ...progressFaults(before, now),
      ...ledgerFaults(state, steps),
      ...folderFaults(data, state),
      ...(members === 0 ? [] : [`${members} records of steps are not in the store`]),
    ];
  } finally {
    database.close();
  }
}

function progressFaults(before: SeenLoop | null, now: SeenLoop): string[] {
  const faults: string[] = [];
  if (now.state === 'paused') faults.push(`the loop is paused: ${now.paused_for}`);
  if (now.last_error !== null) faults.push(`the loop failed: ${now.last_error}`);
  if (before === null) return faults;
  if (now.step < before.step) faults.push(`step ${before.step} was seen, the loop is at ${now.step}`);
  if (now.counts.published < before.counts.published)
    faults.push(`${before.counts.published} publications were seen, ${now.counts.published} are known`);
  // A publication that was under way may have come to its end.
  if (now.live !== before.live && now.counts.published === before.counts.published)
    faults.push(`${before.live} was live, now ${now.live} is`);
  return faults;
}

function ledgerFaults(state: StoredState, steps: readonly Step[]): string[] {
  const numbers = steps
    .map(({ receipt }) => (JSON.parse(receipt) as { step: number }).step)
    .sort((a, b) => a - b);
  const known = new Set(steps.map(({ digest }) => digest));
  const faults: string[] = [];
  // A step whose rewards were all equal leaves the adapter as it was: no new one, so no row.
  if (new Set(numbers).size !== numbers.length)
    faults.push(`the ledger's steps are ${numbers.join(', ')}: one of them twice`);
  if ((numbers.at(-1) ?? 0) > state.step)
    faults.push(`the ledger ends at step ${numbers.at(-1)}, the state at ${state.step}`);
  if (state.ledger !== null && !known.has(state.ledger.version))
    faults.push(`the candidate ${state.ledger.version} is not in the ledger`);
  for (const { version } of state.published)
    if (!known.has(version)) faults.push(`the published ${version} is not in the ledger`);
  const parents = steps.filter(({ parent_digest: parent }) => parent !== null && !known.has(parent));
  // The first step comes from the start, which no step made.
  if (new Set(parents.map(({ parent_digest: parent }) => parent)).size > 1)
    faults.push('steps of the ledger have parents that it does not know');
  return faults;
}

function folderFaults(data: string, { live, start, ledger }: StoredState): string[] {
  const folder = join(data, 'loop');
  const faults: string[] = [];
  if (live !== start && !existsSync(join(folder, 'versions', live, 'manifest.json')))
    faults.push(`the live version ${live} is not on disk`);
  if (ledger !== null && !existsSync(join(folder, 'checkpoints', ledger.checkpoint)))
    faults.push(`the checkpoint ${ledger.checkpoint} of the ledger is not on disk`);
  return faults;
}
