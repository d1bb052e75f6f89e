// Whose the loop's state in the store is. The state names versions that lie in one folder, so it belongs to that folder;
// and it is written by one process at a time, the one that took it last. Who took it before finds its writes refused.

import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ConflictError, IntegrityError } from '../../errors.js';
import type { TrajectoryStore } from '../../trajectory/index.js';
import { checkJson, readJsonFileIfAny, writeJsonFile } from '../../util/json-file.js';
import { checkpointsOf, versionsOf } from './house.js';
import type { LoopState } from './state.js';

const FILE = 'folder.json';
export const OWNER_DOCUMENT = 'loop.owner';

const folderFile = z.strictObject({ formatVersion: z.literal(1), id: z.string() });
const ownerDocument = z.strictObject({ folder: z.string(), process: z.string() });

/** What the store must still say for the loop to write: the `expected` of its writes. */
type Ownership = Readonly<Record<typeof OWNER_DOCUMENT, unknown>>;

/**
 * Takes the state over for this process: from then on no write of an earlier owner succeeds. A state or folder of an earlier build has no id yet and gets one.
 * @param onLost  another process has taken it since
 * @returns the store, through which the state is written
 * @throws {IntegrityError} the state is that of another folder, or there is none and the folder is that of another state: nothing is written
 * @throws {ConflictError} another process took it at the same moment
 */
export async function takeOwnership(
  store: TrajectoryStore,
  folder: string,
  state: LoopState | null,
  onLost: (error: ConflictError) => void,
): Promise<TrajectoryStore> {
  const owner = await readOwner(store);
  const id = await folderId(folder);
  if (owner === null && state === null && (await isUsed(folder)))
    throw new IntegrityError(
      `the store knows of no loop, and ${folder} holds checkpoints or versions of one: it belongs to another store, or the store was lost. Set paths.data or store.url right, or begin anew with \`searchloop loop reset\`, which puts the folder aside`,
    );
  const isOther = owner === null ? id === null && !(await canHold(folder, state)) : owner.folder !== id;
  if (isOther)
    throw new IntegrityError(
      `the loop's state in the store is that of another folder (${owner?.folder ?? `it names version ${state?.live}`}), and ${folder} is ${id ?? 'a new one'}: another server learns into this store, or the folder was lost. Set paths.data or store.url right, or begin anew with \`searchloop loop reset\``,
    );
  const taken = { folder: id ?? randomUUID(), process: randomUUID() };
  if (id === null) await writeJsonFile(join(folder, FILE), { formatVersion: 1, id: taken.folder });
  await store.putDocuments({ [OWNER_DOCUMENT]: taken }, { [OWNER_DOCUMENT]: owner });
  return ownedStore(store, { [OWNER_DOCUMENT]: taken }, onLost);
}

/** Steps and documents are written only while the state is ours. */
function ownedStore(
  store: TrajectoryStore,
  ownership: Ownership,
  onLost: (error: ConflictError) => void,
): TrajectoryStore {
  const owned = async <Result>(write: Promise<Result>): Promise<Result> => {
    try {
      return await write;
    } catch (error) {
      if (error instanceof ConflictError) onLost(error);
      throw error;
    }
  };
  const writes: Pick<TrajectoryStore, 'putDocuments' | 'commitStep'> = {
    putDocuments: (documents, expected = {}) =>
      owned(store.putDocuments(documents, { ...expected, ...ownership })),
    commitStep: (step) => owned(store.commitStep({ ...step, expected: { ...step.expected, ...ownership } })),
  };
  return Object.assign(Object.create(store) as TrajectoryStore, writes);
}

/** The folder that the state belongs to; null: no build that knows of it has run. */
export async function readOwner(
  store: Pick<TrajectoryStore, 'readDocument'>,
): Promise<z.infer<typeof ownerDocument> | null> {
  const stored = await store.readDocument(OWNER_DOCUMENT);
  return stored === null ? null : checkJson(stored, ownerDocument, `the document ${OWNER_DOCUMENT}`);
}

/** Null where it has none. */
export async function folderId(folder: string): Promise<string | null> {
  return (await readJsonFileIfAny(join(folder, FILE), folderFile))?.id ?? null;
}

/** A state that names steps or versions cannot be that of an empty folder. */
async function canHold(folder: string, state: LoopState | null): Promise<boolean> {
  if (state === null || (state.ledger === null && state.published.length === 0)) return true;
  return isUsed(folder);
}

/** Checkpoints or versions lie in it. */
async function isUsed(folder: string): Promise<boolean> {
  for (const part of [checkpointsOf(folder), versionsOf(folder)])
    if ((await readdir(part).catch(() => [])).length > 0) return true;
  return false;
}
