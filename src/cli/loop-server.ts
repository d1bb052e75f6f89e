// What commands ask of the loop of a running server.

import type { Command } from 'commander';
import type { Config } from '../config/index.js';
import { InvalidInputError, NotFoundError, UnavailableError } from '../errors.js';

export interface ServerFlags {
  readonly url?: string;
  readonly key?: string;
}

export const onServer = (command: Command): Command =>
  command
    .option('--url <address>', 'of the server; default: server.host and server.port')
    .option('--key <key>', 'an API key with the scope admin');

/**
 * @param path  below `/admin/loop`
 * @throws {NotFoundError} there is no such version, or no loop; {InvalidInputError} the order makes no sense now
 * @throws {UnavailableError} no answer, or a refusal
 */
export async function callLoop<Answer extends object>(
  { server }: Config,
  { url, key }: ServerFlags,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<Answer> {
  const host = server.host.includes(':') ? `[${server.host}]` : server.host;
  const base = url ?? `http://${host}:${server.port}`;
  let answer: Response;
  try {
    answer = await fetch(new URL(`/admin/loop${path}`, base), {
      method,
      headers: {
        'content-type': 'application/json',
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (cause) {
    throw new UnavailableError(`no server answers at ${base}; --url names another`, { cause });
  }
  const value = await bodyOf<Answer & { error?: { message: string; code: string | null } }>(answer);
  if (answer.ok && value !== null) return value;
  const reason = value?.error?.message ?? 'no reason given';
  if (value?.error?.code === 'version_not_found') throw new NotFoundError(reason);
  if (answer.status === 404) throw new NotFoundError(await whyNoLoop(base, reason));
  const message = `${base} answers ${answer.status}: ${reason}`;
  // The server's state and the key's rights are no fault of the line.
  throw answer.status === 400 ? new InvalidInputError(message) : new UnavailableError(message);
}

/** Null where it is no JSON: then it is no server of ours. */
async function bodyOf<Body>(answer: Response): Promise<Body | null> {
  try {
    return (await answer.json()) as Body;
  } catch {
    return null;
  }
}

/** A server's loop opens before the server calls itself ready. */
async function whyNoLoop(base: string, reason: string): Promise<string> {
  const ready = await fetch(new URL('/readyz', base)).catch(() => null);
  const state = ready === null ? null : await bodyOf<{ status?: string; reasons?: string[] }>(ready);
  if (state?.status === 'not ready')
    return `no loop runs at ${base} yet, for the server is still starting: ${state.reasons?.join('; ') ?? reason}`;
  if (state?.reasons?.some((reason) => reason.startsWith('the loop')))
    return `no loop runs at ${base}: ${state.reasons.join('; ')}`;
  if (ready?.ok && state?.status !== undefined)
    return `no loop runs at ${base}: loop.enabled is false there, or the loop could not start (the server's log says why)`;
  return `${base} answers 404: ${reason}`;
}
