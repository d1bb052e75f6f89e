// Files of plain web servers, such as mirrors of Wikimedia's dumps.

import { CancelledError, IntegrityError, NotFoundError } from '../../errors.js';
import { boundedText, NoAnswerError } from '../../util/http.js';
import {
  type ByteSource,
  continuesAt,
  fetchAnswer,
  isRetryableStatus,
  rangeHeader,
  SourceError,
  unreachable,
} from './source.js';

const MAX_TEXT_BYTES = 16 * 1024 * 1024;
/** Compressed on the way, a range would be one of other bytes; Wikimedia asks clients to say who they are. */
const HEADERS = { 'accept-encoding': 'identity', 'user-agent': 'searchloop (index pull)' };

/**
 * A short text.
 * @throws {NotFoundError} status 404; {SourceError} any other failure, with status and address
 */
export async function fetchText(url: URL, signal?: AbortSignal): Promise<string> {
  const response = await ask(url, { headers: HEADERS }, signal);
  try {
    return await boundedText(response, MAX_TEXT_BYTES);
  } catch (cause) {
    if (signal?.aborted) throw new CancelledError();
    if (!(cause instanceof NoAnswerError)) throw unreachable(url.origin, cause);
    throw new SourceError(`${url}: ${cause.message}`, { retryable: false, cause });
  }
}

/**
 * Size of a file in bytes.
 * @throws {NotFoundError} status 404; {SourceError} any other failure, or an answer without a size
 */
export async function fetchSize(url: URL, signal?: AbortSignal): Promise<number> {
  const response = await ask(url, { method: 'HEAD', headers: HEADERS }, signal);
  const text = response.headers.get('content-length') ?? '';
  if (!/^\d+$/.test(text))
    throw new SourceError(`${url}: expected the file's size (content-length), came none`, {
      retryable: false,
    });
  return Number(text);
}

/** One file as a source of bytes. */
export function httpSource(url: URL, signal?: AbortSignal): ByteSource {
  return {
    name: url.origin,
    read: async ({ path, sizeBytes }, start) => {
      const response = await ask(url, { headers: { ...HEADERS, ...rangeHeader(start) } }, signal);
      if (!continuesAt(response, start)) {
        await response.body?.cancel();
        return null;
      }
      const total = totalOf(response, start);
      if (total === null || total === sizeBytes) return response;
      await response.body?.cancel();
      throw new IntegrityError(
        `${path} from ${url.origin}: expected ${sizeBytes} bytes, the server has ${total}`,
      );
    },
  };
}

/** Size of the whole file as an answer tells it. */
function totalOf(response: Response, start: number): number | null {
  const range = /\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1];
  if (range !== undefined) return Number(range);
  const length = response.headers.get('content-length');
  return length === null ? null : start + Number(length);
}

/** @returns an answer that is fine, or one that says that the range cannot be had (416) */
async function ask(url: URL, init: RequestInit, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetchAnswer(url, init, signal);
  } catch (error) {
    if (signal?.aborted) throw new CancelledError();
    throw unreachable(url.origin, error);
  }
  if (response.ok || response.status === 416) return response;
  await response.body?.cancel();
  if (response.status === 404) throw new NotFoundError(`${url}: not found (status 404)`);
  throw new SourceError(`${url}: status ${response.status}`, {
    retryable: isRetryableStatus(response.status),
  });
}
