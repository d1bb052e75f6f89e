import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError, SearchloopError } from '../../errors.js';
import { type Database, isLocked, openDatabase, sqliteCode } from '../../storage/index.js';
import { readManifest } from './manifest.js';

const POLL_MS = 100;

/**
 * Waits until nobody changes the index in a folder, and keeps others from it until the connection is closed.
 * @returns null where no index can be changed: there is none, or it is damaged
 * @throws {CancelledError} the signal fired while another process changed it
 */
export async function lockChanges(folder: string, signal?: AbortSignal): Promise<Database | null> {
  for (;;) {
    let db: Database | null = null;
    try {
      const path = join(folder, (await readManifest(folder)).passages.file);
      if (!existsSync(path)) return null;
      // Files beside it would go with the index, and readers could not go on.
      db = openDatabase(path, { mustExist: true, keepJournalMode: true, busyTimeoutMs: 0 });
      db.exec('BEGIN IMMEDIATE');
      return db;
    } catch (error) {
      db?.close();
      if (!isLocked(error)) {
        if (error instanceof SearchloopError || sqliteCode(error) !== null) return null;
        throw error;
      }
    }
    if (signal?.aborted) throw new CancelledError();
    await sleep(POLL_MS);
  }
}
