// What commands ask of the loop of a running server.

import { request as requestHttp } from 'node:http';
import { type RequestOptions, request as requestHttps } from 'node:https';
import { text } from 'node:stream/consumers';
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
export async function callLoop<Value extends object>(
  { server }: Config,
  { url, key }: ServerFlags,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<Value> {
  const host = server.host.includes(':') ? `[${server.host}]` : server.host;
  const base = url ?? `http://${host}:${server.port}`;
  let answer: Answer;
  try {
    const headers = {
      'content-type': 'application/json',
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    };
    const url = new URL(`/admin/loop${path}`, base);
    answer = await send(url, { method, headers }, body === undefined ? '' : JSON.stringify(body));
  } catch (cause) {
    throw new UnavailableError(`no server answers at ${base}; --url names another`, { cause });
  }
  const value = bodyOf<Value & { error?: { message: string; code: string | null } }>(answer);
  if (answer.status === 200 && value !== null) return value;
  const reason = value?.error?.message ?? 'no reason given';
  if (value?.error?.code === 'version_not_found') throw new NotFoundError(reason);
  if (answer.status === 404) throw new NotFoundError(await whyNoLoop(base, reason));
  const message = `${base} answers ${answer.status}: ${reason}`;
  // The server's state and the key's rights are no fault of the line.
  throw answer.status === 400 ? new InvalidInputError(message) : new UnavailableError(message);
}

interface Answer {
  readonly status: number | undefined;
  readonly text: string;
}

/** Waits for as long as the answer takes: `fetch` gives up after five minutes, and a step may take longer. */
function send(url: URL, options: RequestOptions, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = url.protocol === 'https:' ? requestHttps : requestHttp;
    const sent = request(url, options, (response) => {
      text(response).then((answer) => resolve({ status: response.statusCode, text: answer }), reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Null where it is no JSON: then it is no server of ours. */
function bodyOf<Body>(answer: Answer): Body | null {
  try {
    return JSON.parse(answer.text) as Body;
  } catch {
    return null;
  }
}

/** A server's loop opens before the server calls itself ready. */
async function whyNoLoop(base: string, reason: string): Promise<string> {
  const ready = await send(new URL('/readyz', base), {}, '').catch(() => null);
  const state = ready === null ? null : bodyOf<{ status?: string; reasons?: string[] }>(ready);
  if (state?.status === 'not ready')
    return `no loop runs at ${base} yet, for the server is still starting: ${state.reasons?.join('; ') ?? reason}`;
  if (state?.reasons?.some((reason) => reason.startsWith('the loop')))
    return `no loop runs at ${base}: ${state.reasons.join('; ')}`;
  if (ready?.status === 200 && state?.status !== undefined)
    return `no loop runs at ${base}: loop.enabled is false there, or the loop could not start (the server's log says why)`;
  return `${base} answers 404: ${reason}`;
}
