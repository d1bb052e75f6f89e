// Calls out over HTTP: JSON goes, text comes, within limits of time and size, and with a reason where none comes.

import { CancelledError } from '../errors.js';

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Of the answer. Default 16 MiB. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface HttpAnswer {
  readonly ok: boolean;
  readonly status: number;
  readonly text: string;
}

/** No answer came, or one that is too long. The message is the reason, without the address. */
export class NoAnswerError extends Error {}

const MOST_BYTES = 16 << 20;

/**
 * The answer, whatever its status.
 * @throws {NoAnswerError} with the reason; {CancelledError} the signal fired
 */
export async function postJson(
  url: string | URL,
  body: unknown,
  { headers, timeoutMs, maxBytes = MOST_BYTES, signal }: PostOptions,
): Promise<HttpAnswer> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    return { ok: response.ok, status: response.status, text: await boundedText(response, maxBytes) };
  } catch (cause) {
    if (signal?.aborted) throw new CancelledError();
    if (cause instanceof NoAnswerError) throw cause;
    const reason = timeout.aborted ? `no answer within ${timeoutMs} ms` : reasonOf(cause);
    throw new NoAnswerError(reason, { cause });
  }
}

/** @throws {NoAnswerError} it is longer; what `fetch` throws where it breaks off */
export async function boundedText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new NoAnswerError(`the answer has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Why `fetch` gave no answer: its own message is "fetch failed" for nearly everything. */
export function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: { code?: string; message?: string } };
  // Where several addresses of a name were tried, only the code says why.
  return cause?.message || cause?.code || message;
}
