// The model hub through its own library: what a repository holds, and where a file's bytes are.

import { fileDownloadInfo, HubApiError, listFiles, modelInfo } from '@huggingface/hub';
import type { HubEnvironment } from '../../config/index.js';
import { CancelledError, DownloadError, IntegrityError, NotFoundError } from '../../errors.js';
import type { WantedFile } from './wanted.js';

/** Longest wait for the head of an answer: a hub that cannot be reached is given up within this. */
const ANSWER_TIMEOUT_MS = 8_000;

export interface HubClient {
  readonly endpoint: string;
  /** Commit that a branch, tag or commit stands for now. */
  resolveRevision(repo: string, revision: string | null): Promise<string>;
  /** All files of a repository with size and sum. */
  list(repo: string, revision: string): Promise<WantedFile[]>;
  /**
   * Bytes of a file from `start` on; null when the server cannot continue there (then ask for all).
   * @throws {HubError | NotFoundError} with status and address; {IntegrityError} the hub has it in another size
   */
  read(repo: string, revision: string, file: WantedFile, start: number): Promise<Response | null>;
}

/** The hub refused or failed; `retryable` when a later try may do better. */
export class HubError extends DownloadError {
  readonly retryable: boolean;
  /** True when nothing answered at all. */
  readonly unreachable: boolean;

  constructor(message: string, kind: { retryable: boolean; unreachable?: boolean; cause?: unknown }) {
    super(message, { cause: kind.cause });
    this.retryable = kind.retryable;
    this.unreachable = kind.unreachable ?? false;
  }
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
        const info = await modelInfo({
          name: repo,
          hubUrl: endpoint,
          fetch: hubFetch,
          additionalFields: ['sha'],
          ...(revision === null ? {} : { revision }),
        });
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
        const response = await hubFetch(info.url, { headers: start > 0 ? { Range: `bytes=${start}-` } : {} });
        if (response.status === 416 || (start > 0 && !continuesAt(response, start))) {
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

function continuesAt(response: Response, start: number): boolean {
  if (!response.ok) return true;
  return (
    response.status === 206 && (response.headers.get('content-range') ?? '').startsWith(`bytes ${start}-`)
  );
}

function wantedOf(entry: {
  path: string;
  size: number;
  oid?: string;
  lfs?: { oid: string; size: number };
}): WantedFile {
  const { path, lfs } = entry;
  if (lfs) return { path, sizeBytes: lfs.size, sum: { algorithm: 'sha256', hex: lfs.oid } };
  return { path, sizeBytes: entry.size, sum: { algorithm: 'git-sha1', hex: entry.oid ?? '' } };
}

/** Adds the token for the hub's own address only, and gives up on an answer that does not begin. */
function fetchWithToken(environment: HubEnvironment, signal?: AbortSignal): typeof fetch {
  const origin = new URL(environment.endpoint).origin;
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = new Headers(init?.headers);
    if (environment.token !== null && url.origin === origin)
      headers.set('Authorization', `Bearer ${environment.token}`);
    const controller = new AbortController();
    const stop = (): void => controller.abort(signal?.reason);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    const timer = setTimeout(
      () => controller.abort(new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1000} s`)),
      ANSWER_TIMEOUT_MS,
    );
    try {
      return await fetch(url, { ...init, headers, signal: controller.signal });
    } finally {
      clearTimeout(timer);
    }
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
    return new HubError(`${what} from ${endpoint}: status ${statusCode}, ${reason}`, {
      retryable: statusCode === 429 || statusCode >= 500,
      cause: error,
    });
  }
  const cause = (error as { cause?: { code?: string; message?: string } }).cause;
  const reason = cause?.code ?? cause?.message ?? (error as Error).message;
  return new HubError(`${endpoint} cannot be reached: ${reason}`, {
    retryable: true,
    unreachable: true,
    cause: error,
  });
}
