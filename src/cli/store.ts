// The trajectory store as commands and the server use it.

import { join, resolve } from 'node:path';
import { type Config, dataFolder } from '../config/index.js';
import { ConfigError } from '../errors.js';
import type { RolloutRunnerOptions } from '../rollout/index.js';
import type { Logger } from '../telemetry/index.js';
import {
  NO_NOTES,
  openTrajectoryStore,
  type StoreOptions,
  type TrajectoryStore,
} from '../trajectory/index.js';

type StorageSettings = StoreOptions['storage'];

const DAY_MS = 86_400_000;
/** After the start, when the machine has other things to do. */
const FIRST_RETENTION_MS = 60_000;
const RETENTION_EVERY_MS = 3_600_000;

/** Null for kind `none`. */
function storageOf(config: Pick<Config, 'store' | 'paths'>): StorageSettings | null {
  const { kind, path, url } = config.store;
  if (kind === 'none') return null;
  if (kind === 'postgres') return { kind, url: url as string };
  return { kind, path: path === null ? join(dataFolder(config), 'trajectories.db') : resolve(path) };
}

/** The store of a server, which keeps trying; null for kind `none`. */
export function openServerStore(config: Config, logger: Logger): TrajectoryStore | null {
  const storage = storageOf(config);
  if (storage === null) return null;
  const { commitTimeoutMs, queueBytes } = config.store;
  const onTrouble = (err: Error): void => logger.error({ err }, 'store worker failed');
  return openTrajectoryStore({ storage, commitTimeoutMs, queueBytes, onTrouble });
}

/** Runs work on the store of a command, which fails at once where the store does. */
export async function withStore<Result>(
  config: Config,
  work: (store: TrajectoryStore) => Promise<Result>,
): Promise<Result> {
  const storage = storageOf(config);
  if (storage === null) throw new ConfigError('store.kind is "none": nothing is stored');
  const store = openTrajectoryStore({ storage, retry: false });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** How rollouts hand their records to the store. */
export function recordKeeping(
  store: TrajectoryStore | null,
  config: Config,
  logger: Logger,
): Pick<RolloutRunnerOptions, 'onRecord' | 'recordTimeoutMs' | 'onRecordFailure'> {
  if (store === null) return {};
  return {
    recordTimeoutMs: config.store.commitTimeoutMs,
    async onRecord(record, { keeping, messages, forceAnswer = false }) {
      const notes = keeping?.notes ?? { ...NO_NOTES, messages, forceAnswer };
      await store.put(record, notes, keeping?.feedback ?? null);
    },
    onRecordFailure: (err, { id }) => logger.error({ err, id }, 'an answer could not be stored'),
  };
}

/** Deletes what is too old or too much, every hour. @returns ends it */
export function keepRetention(store: TrajectoryStore, config: Config, logger: Logger): () => void {
  const { retentionDays, retentionBytes } = config.store;
  const prune = async (): Promise<void> => {
    try {
      const removed = await store.prune({
        createdBefore: retentionDays === 0 ? null : Date.now() - retentionDays * DAY_MS,
        maxBytes: retentionBytes === 0 ? null : retentionBytes,
      });
      if (removed > 0) logger.info({ removed }, 'old records were deleted');
    } catch (err) {
      logger.warn({ err }, 'old records could not be deleted');
    }
  };
  const first = setTimeout(prune, FIRST_RETENTION_MS).unref();
  const timer = setInterval(prune, RETENTION_EVERY_MS).unref();
  return () => {
    clearTimeout(first);
    clearInterval(timer);
  };
}
