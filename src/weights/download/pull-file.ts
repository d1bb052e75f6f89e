// One large file into a folder of its own: corpora, which are too large for the shared cache of models.

import { rename, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type HubEnvironment, hubEnvironment } from '../../config/index.js';
import { DownloadError, NotFoundError } from '../../errors.js';
import { syncFolder } from '../../util/atomic-file.js';
import type { OnProgress } from '../../util/progress.js';
import { claimUnlessDone, removeOrphans } from './claim.js';
import { fetchFile } from './fetch-file.js';
import { fetchSize, httpSource } from './http-file.js';
import { createHubClient, hubSource } from './hub.js';
import type { ByteSource } from './source.js';
import type { ExpectedSum, WantedFile } from './wanted.js';

/** A file that a server has, with size and sum, before any of its bytes are fetched. */
export interface RemoteFile {
  readonly wanted: WantedFile;
  readonly source: ByteSource;
}

export interface PullFileOptions {
  readonly onProgress?: OnProgress;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * A file of a hub repository.
 * @param repo  `owner/name`, or `datasets/owner/name`
 * @throws {NotFoundError} no such file; {DownloadError} the hub refuses or cannot be reached
 */
export async function locateHubFile(
  { repo, revision, path }: { readonly repo: string; readonly revision: string; readonly path: string },
  options: { readonly hub?: HubEnvironment; readonly signal?: AbortSignal } = {},
): Promise<RemoteFile> {
  const environment = options.hub ?? hubEnvironment();
  if (environment.offline) throw new DownloadError('the hub is switched off by HF_HUB_OFFLINE');
  const client = createHubClient(environment, options.signal);
  const commit = await client.resolveRevision(repo, revision);
  const wanted = (await client.list(repo, commit)).find((file) => file.path === path);
  if (wanted === undefined)
    throw new NotFoundError(`${repo} at ${commit} has no file ${path} (${client.endpoint})`);
  return { wanted, source: hubSource(client, repo, commit) };
}

/**
 * A file of a plain web server, whose sum is known from elsewhere.
 * @throws {NotFoundError} no such file; {DownloadError} the server fails
 */
export async function locateHttpFile(
  url: URL,
  sum: ExpectedSum,
  options: { readonly signal?: AbortSignal } = {},
): Promise<RemoteFile> {
  const sizeBytes = await fetchSize(url, options.signal);
  return {
    wanted: { path: basename(url.pathname), sizeBytes, sum },
    source: httpSource(url, options.signal),
  };
}

/**
 * The file in `folder`, fetched when it is not there yet. It has its name only when it is whole and its sum is right;
 * until then it is a `.partial` beside it, which the next call goes on with.
 * @returns its path
 * @throws {IntegrityError} wrong sum or size; {DownloadError | NotFoundError} the source fails
 * @throws {CancelledError} on abort; what was fetched is kept
 */
export async function pullFile(
  { wanted, source }: RemoteFile,
  folder: string,
  options: PullFileOptions = {},
): Promise<string> {
  // The sum in the name: another version of the file is another file.
  const name = `${wanted.sum.hex.slice(0, 12)}-${basename(wanted.path)}`;
  const path = join(folder, name);
  const isDone = async (): Promise<boolean> =>
    (await stat(path).catch(() => null))?.size === wanted.sizeBytes;
  const held = await claimUnlessDone({
    folder,
    key: name,
    kind: 'file',
    isDone,
    onWait: () => options.onNote?.(`waiting for another process that fetches ${wanted.path}`),
    signal: options.signal,
  });
  if (held !== null) {
    try {
      await fetchFile(wanted, source, held.path, options);
      await rename(held.path, path);
      await syncFolder(folder);
    } finally {
      await held.release(false);
    }
  }
  await removeOrphans(folder, name);
  return path;
}
