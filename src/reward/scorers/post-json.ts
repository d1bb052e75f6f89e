// POSTs JSON and reads JSON, with a time limit, a size limit and a few tries.

import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError, UnavailableError } from '../../errors.js';

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Further tries after a failure that may pass. */
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly signal?: AbortSignal | undefined;
}

const MOST_BYTES = 16 << 20;

/**
 * @returns the parsed answer
 * @throws {UnavailableError} no good answer came; {CancelledError} the signal fired
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
    const mayPass = response.status === 408 || response.status === 429 || response.status >= 500;
    const error = new UnavailableError(`${url}: answered ${response.status}`);
    return { ok: false, mayPass, error };
  } catch (cause) {
    if (signal?.aborted) throw new CancelledError();
    const reason = timeout.aborted ? `no answer within ${timeoutMs} ms` : (cause as Error).message;
    return { ok: false, mayPass: true, error: new UnavailableError(`${url}: ${reason}`, { cause }) };
  }
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
