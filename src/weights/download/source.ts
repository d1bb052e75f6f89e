// Where a file's bytes come from: a server that can be asked for them from any place on.

import { DownloadError } from '../../errors.js';
import { reasonOf } from '../../util/http.js';
import type { WantedFile } from './wanted.js';

/** Longest wait for the head of an answer: a server that cannot be reached is given up within this. */
const ANSWER_TIMEOUT_MS = 8_000;

export interface ByteSource {
  /** For messages. */
  readonly name: string;
  /**
   * Bytes of a file from `start` on; null when the server cannot continue there (then ask for all).
   * @throws {SourceError | NotFoundError} with status and address; {IntegrityError} it is there in another size
   */
  read(file: WantedFile, start: number): Promise<Response | null>;
}

/** A server refused or failed; `retryable` when a later try may do better. */
export class SourceError extends DownloadError {
  readonly retryable: boolean;
  /** True when nothing answered at all. */
  readonly unreachable: boolean;

  constructor(message: string, kind: { retryable: boolean; unreachable?: boolean; cause?: unknown }) {
    super(message, { cause: kind.cause });
    this.retryable = kind.retryable;
    this.unreachable = kind.unreachable ?? false;
  }
}

/** Whether a later try may do better than an answer of this status. */
export const isRetryableStatus = (status: number): boolean => status === 429 || status >= 500;

/** @param error  what `fetch` threw without an answer */
export function unreachable(name: string, error: unknown): SourceError {
  return new SourceError(`${name} cannot be reached: ${reasonOf(error)}`, {
    retryable: true,
    unreachable: true,
    cause: error,
  });
}

/** `fetch` that gives up on an answer that does not begin. The signal ends the body too. */
export async function fetchAnswer(url: URL, init: RequestInit, signal?: AbortSignal): Promise<Response> {
  const controller = new AbortController();
  const stop = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  const timer = setTimeout(
    () => controller.abort(new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1000} s`)),
    ANSWER_TIMEOUT_MS,
  );
  try {
    return await fetch(url, { ...init, signal: controller.signal });
  } finally {
    clearTimeout(timer);
  }
}

/** Asks for the bytes from a place on. */
export const rangeHeader = (start: number): Record<string, string> =>
  start > 0 ? { Range: `bytes=${start}-` } : {};

/** False for an answer with other bytes than those asked for; a failure is not such an answer. */
export function continuesAt(response: Response, start: number): boolean {
  if (response.status === 416) return false;
  if (start === 0 || !response.ok) return true;
  return (
    response.status === 206 && (response.headers.get('content-range') ?? '').startsWith(`bytes ${start}-`)
  );
}
