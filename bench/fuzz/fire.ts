// Sends fuzzed bodies to a running server and judges what comes back.

import { eachOf } from '#searchloop/util/side-by-side.js';
import { mulberry32 } from '../random.js';
import { type FuzzCase, fuzzCase } from './bodies.js';

export interface FuzzOptions {
  /** Address such as `http://127.0.0.1:8000`. */
  readonly url: string;
  readonly count: number;
  readonly seed: number;
  readonly concurrency: number;
  /** An answer that takes longer is a hang. */
  readonly timeoutMs: number;
  readonly onProgress?: (done: number) => void;
}

export interface FuzzResult {
  /** Answers by status; 0 where none came. */
  readonly statuses: Readonly<Record<number, number>>;
  /** What a server must not do, with the case that made it do so. */
  readonly faults: readonly FuzzFault[];
}

export interface FuzzFault {
  readonly kind:
    | 'server error'
    | 'hang'
    | 'broken connection'
    | 'not JSON'
    | 'bad envelope'
    | 'bad stream'
    | 'too big';
  readonly index: number;
  readonly path: string;
  readonly detail: string;
}

/** An error answer above this size repeats its input. */
const LARGEST_ERROR = 16 * 1024;

export async function fireFuzz(options: FuzzOptions): Promise<FuzzResult> {
  const random = mulberry32(options.seed);
  const statuses: Record<number, number> = {};
  const faults: FuzzFault[] = [];
  let done = 0;
  await eachOf(Array.from({ length: options.count }), options.concurrency, async (_, index) => {
    const item = fuzzCase(random);
    const { status, fault } = await fireOne(options, item);
    statuses[status] = (statuses[status] ?? 0) + 1;
    if (fault) faults.push({ ...fault, index, path: item.path });
    options.onProgress?.(++done);
  });
  return { statuses, faults };
}

type Verdict = { readonly status: number; readonly fault: Pick<FuzzFault, 'kind' | 'detail'> | null };

async function fireOne(options: FuzzOptions, item: FuzzCase): Promise<Verdict> {
  try {
    const response = await fetch(options.url + item.path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: item.bytes as RequestInit['body'],
      signal: AbortSignal.timeout(options.timeoutMs),
    });
    const text = await response.text();
    return { status: response.status, fault: judge(response, text) };
  } catch (error) {
    const timedOut = (error as Error).name === 'TimeoutError';
    return { status: 0, fault: { kind: timedOut ? 'hang' : 'broken connection', detail: describe(error) } };
  }
}

function judge(response: Response, text: string): Verdict['fault'] {
  const { status } = response;
  const detail = `${status} ${text.slice(0, 300)}`;
  if (status >= 500) return { kind: 'server error', detail };
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) return judgeStream(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'not JSON', detail };
  }
  if (status === 200) return null;
  if (text.length > LARGEST_ERROR) return { kind: 'too big', detail };
  return isEnvelope(value) ? null : { kind: 'bad envelope', detail };
}

/** Chunks to an end: exactly one finish reason a choice, then the marker; a failure in mid-stream is a fault. */
function judgeStream(text: string): Verdict['fault'] {
  const bad = (detail: string): Verdict['fault'] => ({ kind: 'bad stream', detail: detail.slice(0, 300) });
  const events = text.split('\n\n').filter((block) => block.startsWith('data: '));
  if (events.pop() !== 'data: [DONE]') return bad(`no end marker: ${text.slice(-200)}`);
  const ended = new Map<number, number>();
  for (const event of events) {
    const chunk = JSON.parse(event.slice(6)) as {
      error?: unknown;
      choices?: { index: number; finish_reason: string | null }[];
    };
    if (chunk.error !== undefined) return { kind: 'server error', detail: event.slice(0, 300) };
    for (const { index, finish_reason: reason } of chunk.choices ?? [])
      ended.set(index, (ended.get(index) ?? 0) + (reason === null ? 0 : 1));
  }
  return [...ended.values()].every((count) => count === 1)
    ? null
    : bad('not one finish reason for each choice');
}

function isEnvelope(value: unknown): boolean {
  const error = (value as { error?: Record<string, unknown> } | null)?.error;
  const keys = Object.keys(error ?? {})
    .sort()
    .join();
  return keys === 'code,message,param,type' && typeof error?.['message'] === 'string';
}

function describe(error: unknown): string {
  const { message, cause } = error as Error;
  return cause === undefined ? message : `${message}: ${(cause as Error).message}`;
}
