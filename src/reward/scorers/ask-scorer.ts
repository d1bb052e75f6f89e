// Asks a program or a judge by HTTP: a few tries, and told apart what may pass, what never will, and what is of this request alone.

import { IntegrityError, RefusedError, UnavailableError } from '../../errors.js';
import { NoAnswerError, type PostOptions, postJson } from '../../util/http.js';
import { retried } from '../../util/retried.js';

export interface AskOptions extends Omit<PostOptions, 'maxBytes'> {
  /** Further tries after a failure that may pass. */
  readonly retries: number;
  readonly retryDelayMs: number;
}

/** Whoever tells rewards cannot be reached now, or has too much to do: the same may be answered later. */
export class ScorerAwayError extends UnavailableError {}

/** Characters of a refusal that are told. */
const MOST_SAID = 200;
/** Of 400 to 499: who may ask, where, and how often; what was asked has no part in it. */
const NOT_OF_THE_REQUEST: ReadonlySet<number> = new Set([401, 403, 404, 408, 429]);

/**
 * @returns the parsed answer
 * @throws {ScorerAwayError} no good answer came; {UnavailableError} nobody may ask so, or there; {RefusedError} this very body is not taken;
 * {IntegrityError} the answer is no JSON; {CancelledError} the signal fired
 */
export function askScorer(url: string, body: unknown, options: AskOptions): Promise<unknown> {
  const { retries, retryDelayMs: pauseMs, signal } = options;
  const mayPass = (error: unknown): boolean => error instanceof ScorerAwayError;
  return retried(() => attempt(url, body, options), { retries, pauseMs, signal, mayPass });
}

async function attempt(url: string, body: unknown, options: PostOptions): Promise<unknown> {
  const { ok, status, text } = await postJson(url, body, options).catch((cause) => {
    if (!(cause instanceof NoAnswerError)) throw cause;
    throw new ScorerAwayError(`${url}: ${cause.message}`, { cause });
  });
  if (!ok) throw failureOf(url, status, text);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new IntegrityError(`${url}: expected JSON, came ${JSON.stringify(shortened(text))}`, { cause });
  }
}

function failureOf(url: string, status: number, text: string): Error {
  const said = shortened(text);
  const message = `${url}: answered ${status}${said === '' ? '' : `: ${said}`}`;
  if (status === 408 || status === 429 || status >= 500) return new ScorerAwayError(message);
  const isRefusal = status >= 400 && status < 500 && !NOT_OF_THE_REQUEST.has(status);
  return isRefusal ? new RefusedError(message) : new UnavailableError(message);
}

const shortened = (text: string): string => text.replace(/\s+/gu, ' ').trim().slice(0, MOST_SAID);
