// A rollout runner that plays scripts, over a tokenizer whose tokens are the bytes of UTF-8. What it says of
// usage, tokens and records is true of what it played.

import { setTimeout as sleep } from 'node:timers/promises';
import type { SampledToken } from '../../src/engine/index.js';
import { CancelledError } from '../../src/errors.js';
import type { Passage } from '../../src/retrieval/index.js';
import type {
  Citation,
  Rollout,
  RolloutEvent,
  RolloutFinish,
  RolloutRequest,
} from '../../src/rollout/index.js';
import type { TokenOrigin, TrajectoryRecord } from '../../src/trajectory/index.js';

export type Step =
  | { readonly think: string }
  /** Reasoning text that costs no memory of its own: for tests of what others keep. */
  | { readonly noise: string }
  | { readonly search: string; readonly passages?: readonly Passage[]; readonly error?: string }
  /** Cut into tokens (bytes); text comes with the token that completes a character. */
  | { readonly answer: string }
  /** Ends the rollout; without it the script ends with `stop`. */
  | { readonly finish: RolloutFinish; readonly citations?: readonly Citation[] }
  | { readonly fail: unknown }
  | { readonly waitMs: number }
  /** Waits for this, or for the end of the request. */
  | { readonly until: Promise<unknown> };

export type Script = (request: RolloutRequest, choice: number) => Iterable<Step> | AsyncIterable<Step>;

export interface ScriptedRunner {
  run(request: RolloutRequest): Rollout;
  readonly requests: RolloutRequest[];
  /** How rollouts ended, in order of their end. `stopped`: by the signal, or by a reader that left. */
  readonly ends: ('done' | 'failed' | 'stopped')[];
  /** Events handed out so far. */
  readonly yielded: number;
  readonly running: number;
}

export const PROMPT_TOKENS = 7;
export const CACHED_TOKENS = 2;
const VERSION = 'base';

export function passage(id: string, title: string, text: string, score = 0.5): Passage {
  return { id, title, text, score };
}

export function scriptedRunner(script: Script): ScriptedRunner {
  const state = {
    requests: [] as RolloutRequest[],
    ends: [] as ScriptedRunner['ends'],
    yielded: 0,
    running: 0,
  };
  return {
    get requests() {
      return state.requests;
    },
    get ends() {
      return state.ends;
    },
    get yielded() {
      return state.yielded;
    },
    get running() {
      return state.running;
    },
    run(request) {
      state.requests.push(request);
      const choice = Number(request.id?.match(/-(\d+)$/)?.[1] ?? 0);
      return play(request, script(request, choice));
    },
  };

  async function* play(request: RolloutRequest, steps: Iterable<Step> | AsyncIterable<Step>): Rollout {
    let end: ScriptedRunner['ends'][number] = 'stopped';
    state.running += 1;
    try {
      for await (const event of eventsOf(request, steps)) {
        state.yielded += 1;
        yield event;
      }
      end = 'done';
    } catch (error) {
      end = error instanceof CancelledError ? 'stopped' : 'failed';
      throw error;
    } finally {
      state.running -= 1;
      state.ends.push(end);
    }
  }
}

async function* eventsOf(
  request: RolloutRequest,
  steps: Iterable<Step> | AsyncIterable<Step>,
): AsyncGenerator<RolloutEvent> {
  const draft = new Draft(request);
  for await (const step of steps) {
    if (request.signal?.aborted) throw new CancelledError();
    if ('fail' in step) throw step.fail;
    if ('waitMs' in step) await abortable(sleep(step.waitMs), request.signal);
    else if ('until' in step) await abortable(step.until, request.signal);
    else if ('think' in step) yield draft.think(step.think);
    else if ('noise' in step) yield { type: 'reasoning.delta', text: step.noise };
    else if ('search' in step) yield* draft.search(step);
    else if ('answer' in step) yield* draft.answer(step.answer);
    else {
      yield draft.done(step.finish, step.citations ?? []);
      return;
    }
  }
  yield draft.done('stop', []);
}

/** What a rollout has said so far. */
class Draft {
  private readonly ids: number[] = Array(PROMPT_TOKENS).fill(0x20);
  private readonly origin: TokenOrigin[] = Array(PROMPT_TOKENS).fill('prompt');
  private text = '';
  private answerTokens = 0;
  private searches = 0;

  constructor(private readonly request: RolloutRequest) {}

  think(text: string): RolloutEvent {
    this.push(Buffer.from(text), 'policy');
    return { type: 'reasoning.delta', text };
  }

  *search(step: Extract<Step, { search: string }>): Generator<RolloutEvent> {
    const index = this.searches++;
    const passages = step.passages ?? [];
    this.push(Buffer.from(step.search), 'policy');
    yield { type: 'search.query', index, query: step.search };
    this.push(Buffer.from(passages.map((item) => item.text).join('\n')), 'environment');
    const error = step.error ?? null;
    yield { type: 'search.results', index, query: step.search, passages, durationMs: 1.5, error };
  }

  *answer(text: string): Generator<RolloutEvent> {
    this.text += text;
    for (const character of text) {
      const bytes = [...Buffer.from(character)];
      this.push(bytes, 'policy');
      this.answerTokens += bytes.length;
      for (const [at, id] of bytes.entries()) {
        const isLast = at === bytes.length - 1;
        yield { type: 'answer.delta', text: isLast ? character : '', tokens: [this.token(id)] };
      }
    }
  }

  done(finish: RolloutFinish, citations: readonly Citation[]): RolloutEvent {
    const count = (origin: TokenOrigin) => this.origin.filter((item) => item === origin).length;
    const injectedTokens = count('environment');
    const completionTokens = count('policy');
    return {
      type: 'done',
      answer: this.text,
      finish,
      citations,
      usage: {
        promptTokens: PROMPT_TOKENS + injectedTokens,
        cachedTokens: CACHED_TOKENS,
        completionTokens,
        reasoningTokens: completionTokens - this.answerTokens,
        injectedTokens,
        searches: this.searches,
      },
      record: this.record(),
      stored: null,
    };
  }

  private push(ids: Iterable<number>, origin: TokenOrigin): void {
    for (const id of ids) {
      this.ids.push(id);
      this.origin.push(origin);
    }
  }

  private token(id: number): SampledToken {
    const asked = this.request.topLogprobs;
    const alternatives = Array.from({ length: asked ?? 0 }, (_, at) => ({
      id: (id + at) % 256,
      logprob: -0.25 - at,
    }));
    return { id, logprob: -0.25, samplingLogprob: -0.125, ...(asked === undefined ? {} : { alternatives }) };
  }

  private record(): TrajectoryRecord {
    const sampled = this.origin.map((item) => item === 'policy');
    return {
      id: this.request.id ?? 'rollout',
      createdAt: 0,
      method: this.request.method,
      promptTemplateDigest: 'template',
      modelDigest: 'model',
      indexSnapshotId: 'snapshot',
      sampling: {},
      seed: this.request.seed ?? null,
      groupId: this.request.groupId ?? null,
      tokenIds: this.ids,
      origin: this.origin,
      lossMask: sampled.map((item) => (item ? 1 : 0)),
      logprobs: sampled.map((item) => (item ? -0.25 : 0)),
      samplingLogprobs: sampled.map((item) => (item ? -0.125 : 0)),
      versions: [{ start: 0, end: this.ids.length, adapterVersion: this.request.expectedVersion ?? VERSION }],
      turnStarts: [PROMPT_TOKENS],
      searches: [],
      observations: [],
      question: '',
      answer: this.text,
      stop: 'answer',
      validActions: this.searches,
      invalidActions: 0,
      duplicateSearches: 0,
      forced: false,
    };
  }
}

/** @throws {CancelledError} as soon as the signal fires */
async function abortable(promise: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) throw new CancelledError();
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(new CancelledError());
    signal?.addEventListener('abort', onAbort, { once: true });
  });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}
