// The model hub through its own library: what a repository holds, and where a file's bytes are.

import { datasetInfo, fileDownloadInfo, HubApiError, listFiles, modelInfo } from '@huggingface/hub';
import type { HubEnvironment } from '../../config/index.js';
import { CancelledError, IntegrityError, NotFoundError } from '../../errors.js';
import {
  type ByteSource,
  continuesAt,
  fetchAnswer,
  isRetryableStatus,
  rangeHeader,
  SourceError,
  unreachable,
} from './source.js';
import type { WantedFile } from './wanted.js';

const DATASET = 'datasets/';

/** Repositories are `owner/name`, datasets `datasets/owner/name`. */
export interface HubClient {
  readonly endpoint: string;
  /** Commit that a branch, tag or commit stands for now. */
  resolveRevision(repo: string, revision: string | null): Promise<string>;
  /** All files of a repository with size and sum. */
  list(repo: string, revision: string): Promise<WantedFile[]>;
  /**
   * Bytes of a file from `start` on; null when the server cannot continue there (then ask for all).
   * @throws {SourceError | NotFoundError} with status and address; {IntegrityError} the hub has it in another size
   */
  read(repo: string, revision: string, file: WantedFile, start: number): Promise<Response | null>;
}

export function createHubClient(environment: HubEnvironment, signal?: AbortSignal): HubClient {
  const { endpoint } = environment;
  const hubFetch = fetchWithToken(environment, signal);
  const call = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw hubError(error, what, endpoint, signal);
    }
  };
  return {
    endpoint,
    resolveRevision: (repo, revision) =>
      call(repo, async () => {
        const options = {
          hubUrl: endpoint,
          fetch: hubFetch,
          ...(revision === null ? {} : { revision }),
        };
        const info = repo.startsWith(DATASET)
          ? await datasetInfo({ name: repo.slice(DATASET.length), additionalFields: ['sha'], ...options })
          : await modelInfo({ name: repo, additionalFields: ['sha'], ...options });
        return (info as { sha?: string }).sha ?? revision ?? 'main';
      }),
    list: (repo, revision) =>
      call(repo, async () => {
        const files: WantedFile[] = [];
        for await (const entry of listFiles({
          repo,
          revision,
          recursive: true,
          hubUrl: endpoint,
          fetch: hubFetch,
        }))
          if (entry.type === 'file') files.push(wantedOf(entry));
        return files;
      }),
    read: (repo, revision, { path, sizeBytes }, start) =>
      call(`${repo}/${path}`, async () => {
        const info = await fileDownloadInfo({ repo, path, revision, hubUrl: endpoint, fetch: hubFetch });
        if (!info) throw new NotFoundError(`${repo} at ${revision} has no file ${path} (${endpoint})`);
        if (info.size !== sizeBytes)
          throw new IntegrityError(
            `${path} from ${endpoint}/${repo}: expected ${sizeBytes} bytes, the hub has ${info.size}`,
          );
        const response = await hubFetch(info.url, { headers: rangeHeader(start) });
        if (!continuesAt(response, start)) {
          await response.body?.cancel();
          return null;
        }
        if (!response.ok) {
          await response.body?.cancel();
          throw new HubApiError(info.url, response.status, undefined, `status ${response.status}`);
        }
        return response;
      }),
  };
}

const LENGTHS = { sha256: 64, 'git-sha1': 40 } as const;

/** @throws {IntegrityError} the hub names a sum that is none; files are called by their sums */
function wantedOf(entry: {
  path: string;
  size: number;
  oid?: string;
  lfs?: { oid: string; size: number };
}): WantedFile {
  const { path, lfs } = entry;
  const algorithm = lfs ? 'sha256' : 'git-sha1';
  const hex = (lfs ?? entry).oid ?? '';
  if (!/^[0-9a-f]+$/.test(hex) || hex.length !== LENGTHS[algorithm])
    throw new IntegrityError(
      `${path}: expected a ${algorithm} of ${LENGTHS[algorithm]} hexadecimal digits, the hub lists "${hex}"`,
    );
  return { path, sizeBytes: (lfs ?? entry).size, sum: { algorithm, hex } };
}

/** A repository at one commit as a source of its files. */
export function hubSource(client: HubClient, repo: string, revision: string): ByteSource {
  return {
    name: `${client.endpoint}/${repo}`,
    read: (file, start) => client.read(repo, revision, file, start),
  };
}

/** Adds the token for the hub's own address only, and gives up on an answer that does not begin. */
function fetchWithToken(environment: HubEnvironment, signal?: AbortSignal): typeof fetch {
  const origin = new URL(environment.endpoint).origin;
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = new Headers(init?.headers);
    if (environment.token !== null && url.origin === origin)
      headers.set('Authorization', `Bearer ${environment.token}`);
    return fetchAnswer(url, { ...init, headers }, signal);
  };
}

function hubError(error: unknown, what: string, endpoint: string, signal?: AbortSignal): Error {
  if (signal?.aborted) return new CancelledError();
  if (error instanceof NotFoundError || error instanceof IntegrityError) return error;
  if (error instanceof HubApiError) {
    const { statusCode } = error;
    const reason =
      statusCode === 401 || statusCode === 403
        ? 'access refused (HF_TOKEN gives access to gated models)'
        : statusCode === 404
          ? 'not found'
          : 'the hub failed';
    return new SourceError(`${what} from ${endpoint}: status ${statusCode}, ${reason}`, {
      retryable: isRetryableStatus(statusCode),
      cause: error,
    });
  }
  return unreachable(endpoint, error);
}
