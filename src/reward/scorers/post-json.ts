// POSTs JSON and reads JSON, with a time limit, a size limit and a few tries.

import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError, RefusedError, UnavailableError } from '../../errors.js';

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Further tries after a failure that may pass. */
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Whoever tells rewards cannot be reached now, or has too much to do: the same may be answered later. */
export class ScorerAwayError extends UnavailableError {}

const MOST_BYTES = 16 << 20;
/** Characters of a refusal that are told. */
const MOST_SAID = 200;
/** Of 400 to 499: who may ask, where, and how often; what was asked has no part in it. */
const NOT_OF_THE_REQUEST: ReadonlySet<number> = new Set([401, 403, 404, 408, 429]);

/**
 * @returns the parsed answer
 * @throws {ScorerAwayError} no good answer came; {UnavailableError} nobody may ask so, or there; {RefusedError} this very body is not taken;
 * {CancelledError} the signal fired
 */
export async function postJson(url: string, body: unknown, options: PostOptions): Promise<unknown> {
  for (let tries = 0; ; tries++) {
    const outcome = await attempt(url, body, options);
    if (outcome.ok) return outcome.value;
    if (!outcome.mayPass || tries >= options.retries) throw outcome.error;
    await sleep(options.retryDelayMs * 2 ** tries, undefined, { signal: options.signal }).catch(() => {
      throw new CancelledError();
    });
  }
}

type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly mayPass: boolean; readonly error: Error };

async function attempt(url: string, body: unknown, options: PostOptions): Promise<Outcome> {
  const { headers, timeoutMs, signal } = options;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    const text = await readText(response);
    if (response.ok) return { ok: true, value: JSON.parse(text) };
    return { ok: false, ...failureOf(url, response.status, text) };
  } catch (cause) {
    if (signal?.aborted) throw new CancelledError();
    const reason = timeout.aborted ? `no answer within ${timeoutMs} ms` : (cause as Error).message;
    return { ok: false, mayPass: true, error: new ScorerAwayError(`${url}: ${reason}`, { cause }) };
  }
}

function failureOf(url: string, status: number, text: string): { mayPass: boolean; error: Error } {
  const said = text.replace(/\s+/gu, ' ').trim().slice(0, MOST_SAID);
  const message = `${url}: answered ${status}${said === '' ? '' : `: ${said}`}`;
  const isRefusal = status >= 400 && status < 500 && !NOT_OF_THE_REQUEST.has(status);
  const mayPass = status === 408 || status === 429 || status >= 500;
  if (mayPass) return { mayPass, error: new ScorerAwayError(message) };
  return { mayPass, error: isRefusal ? new RefusedError(message) : new UnavailableError(message) };
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new UnavailableError(`the answer has more than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
