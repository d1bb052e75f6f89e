// The same tests on SQLite and PostgreSQL.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StorageSettings } from '../../../src/storage/index.js';
import { openTrajectoryStore, type TrajectoryStore } from '../../../src/trajectory/index.js';
import { type PostgresServer, startPostgres } from '../../support/postgres-server.js';

export interface OpenedStore {
  readonly store: TrajectoryStore;
  readonly storage: StorageSettings;
  /** A database of the same kind that nothing was written to. */
  another(): StorageSettings;
}

/** @param use  gets the store before the first test; it is empty before each */
export function onBothDatabases(name: string, use: (opened: OpenedStore) => void, tests: () => void): void {
  let folder: string;
  let postgres: PostgresServer;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), `searchloop-${name}-`));
    postgres = await startPostgres();
  });
  afterAll(async () => {
    await postgres?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  let count = 0;
  const settings: Record<StorageSettings['kind'], () => StorageSettings> = {
    sqlite: () => ({ kind: 'sqlite', path: join(folder, `${count++}`, 'store.db') }),
    postgres: () => ({ kind: 'postgres', url: postgres.createDatabase(`${name}${count++}`) }),
  };

  describe.each(['sqlite', 'postgres'] as const)('%s', (kind) => {
    let store: TrajectoryStore;
    beforeAll(() => {
      const storage = settings[kind]();
      store = openTrajectoryStore({ storage, retry: false });
      use({ store, storage, another: settings[kind] });
    });
    afterEach(() => store.delete({}));
    afterAll(() => store.close());
    tests();
  });
}
