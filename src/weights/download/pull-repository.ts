// The files of a hub repository without a manifest: sums come from the hub's own listing at one fixed commit.

import { type HubEnvironment, hubEnvironment } from '../../config/index.js';
import { DownloadError, InvalidInputError } from '../../errors.js';
import { sha256File, sha256Hex } from '../../util/digest.js';
import { type ModelFile, selectGguf, selectModelFiles } from '../model-files.js';
import { type DownloadCache, holdsChecked, openDownloadCache } from './cache.js';
import { claimUnlessDone } from './claim.js';
import { fetchFile } from './fetch-file.js';
import { createHubClient, hubSource } from './hub.js';
import type { PullOptions } from './pull.js';
import type { ByteSource } from './source.js';
import type { WantedFile } from './wanted.js';

export interface HubReference {
  readonly repo: string;
  /** Branch, tag or commit; null is the main branch. */
  readonly revision: string | null;
  /** A GGUF file of the repository; null picks safetensors, else the only GGUF file. */
  readonly file: string | null;
}

export interface PulledRepository {
  readonly repo: string;
  /** The commit that the files are of. */
  readonly revision: string;
  readonly files: readonly (ModelFile & { readonly file: string; readonly sha256: string })[];
}

const REFERENCE = /^([\w.-]+\/[\w.-]+)(?:\/([\w./-]+\.gguf))?(?:@([\w./-]+))?$/;

/** `owner/name`, `owner/name@revision`, `owner/name/file.gguf`; null when the text has another form. */
export function parseHubReference(text: string): HubReference | null {
  const match = REFERENCE.exec(text);
  if (!match || text.startsWith('.') || text.split('/').includes('..')) return null;
  return { repo: match[1] as string, file: match[2] ?? null, revision: match[3] ?? null };
}

/**
 * Fetches a model's files into the cache.
 * @throws {DownloadError} the hub refuses or cannot be reached; {InvalidInputError} the repository has no weights we
 * read, or several GGUF files and none was named
 */
export async function pullRepository(
  reference: HubReference,
  home: string,
  options: PullOptions = {},
): Promise<PulledRepository> {
  const environment: HubEnvironment = options.hub ?? hubEnvironment();
  if (environment.offline) throw new DownloadError('the hub is switched off by HF_HUB_OFFLINE');
  const client = createHubClient(environment, options.signal);
  const { repo } = reference;
  const revision = await client.resolveRevision(repo, reference.revision);
  const listed = await client.list(repo, revision);
  const wanted = new Map(listed.map((file) => [file.path, file]));
  const cache = openDownloadCache(home);
  const files: (ModelFile & { file: string; sha256: string })[] = [];
  for (const { path, role } of select([...wanted.keys()], reference)) {
    const file = wanted.get(path) as WantedFile;
    const sha256 = await pullListed(file, hubSource(client, repo, revision), cache, options);
    files.push({ path, role, sha256, file: cache.path(sha256) });
  }
  return { repo, revision, files };
}

function select(paths: readonly string[], { repo, file }: HubReference): ModelFile[] {
  const safetensors = file === null ? selectModelFiles(paths) : null;
  if (safetensors === null) return [{ path: selectGguf(paths, file, repo), role: 'weights' }];
  if (!safetensors.some(({ role }) => role === 'config'))
    throw new InvalidInputError(`${repo} has safetensors weights but no config.json`);
  return safetensors;
}

async function pullListed(
  wanted: WantedFile,
  source: ByteSource,
  cache: DownloadCache,
  options: PullOptions,
): Promise<string> {
  const known = wanted.sum.algorithm === 'sha256' ? wanted.sum.hex : null;
  if (known !== null && (await holdsChecked(cache, known))) return known;
  const held = await claimUnlessDone({
    folder: cache.partialFolder,
    kind: 'file',
    key: known ?? sha256Hex(`git ${wanted.sum.hex}`),
    isDone: async () => known !== null && cache.has(known),
    onWait: () => options.onNote?.(`waiting for another process that fetches ${wanted.path}`),
    signal: options.signal,
  });
  // Only a known sum can be found done by another process.
  if (!held) return known as string;
  try {
    await fetchFile(wanted, source, held.path, options);
    const sha256 = known ?? (await sha256File(held.path));
    await cache.adopt(held.path, sha256);
    return sha256;
  } finally {
    await held.release(false);
  }
}
