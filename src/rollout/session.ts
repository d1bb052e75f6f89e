// One rollout while it runs: the sequence in the engine and the record beside it, grown together, token for
// token. Methods drive it; it knows no method.

import type { RolloutConfig } from '../config/index.js';
import type { GenerationSequence, Generator, SampledToken } from '../engine/index.js';
import { ContextLengthError, IntegrityError, UnavailableError } from '../errors.js';
import type { Passage, Retriever } from '../retrieval/index.js';
import type { ChatMessage, Tokenizer } from '../tokenizer/index.js';
import {
  createTrajectoryBuilder,
  type ObservationRecord,
  type TrajectoryBuilder,
} from '../trajectory/index.js';
import type { RolloutEvent, RolloutRequest } from './events.js';
import type { PromptSet } from './prompt-file.js';
import { createSearcher, type SearchOutcome } from './retrieval-step.js';

/** What rollouts are made of. */
export interface RolloutHouse {
  readonly generator: Generator;
  /** null where nothing can be searched: methods that search are refused. */
  readonly retriever: Retriever | null;
  readonly tokenizer: Tokenizer;
  readonly config: RolloutConfig;
  readonly prompts: PromptSet;
  /** Pause before the second try of a failed search; it doubles. Default 200. */
  readonly retryDelayMs?: number;
}

export interface Session {
  readonly request: RolloutRequest;
  readonly house: RolloutHouse;
  /** Absent until `open`. */
  readonly builder: TrajectoryBuilder | null;
  readonly sequence: GenerationSequence | null;
  /** The chat template left a `<think>` open. */
  readonly opensInThought: boolean;
  /** Counted while the rollout runs. */
  readonly counts: SessionCounts;
  /** Joined answer deltas. */
  answer: string;
  /** The answer shown is the prompt file's sentence, not the policy's. */
  fallback: boolean;
  /** The environment opened the answer. */
  readonly forced: boolean;
  /** The last characters of what was read into each channel. */
  readonly shownTail: Record<'reasoning' | 'answer', string>;
  /** Passages that the policy saw, one list a search. */
  readonly seen: (readonly Passage[])[];
  /** Ids of the prompt; throws {ContextLengthError} when they leave no room for a token. */
  encodePrompt(messages: readonly ChatMessage[]): number[];
  /** Takes a slot and appends the prompt. */
  open(promptIds: readonly number[]): Promise<void>;
  /** Tokens that still fit into the sequence. */
  room(): number;
  /** Tokens that the request still allows to be sampled. */
  allowance(): number;
  /** Appends an observation; null when it does not fit with at least one token after it. */
  observe(kind: ObservationRecord['kind'], ids: readonly number[]): readonly [number, number] | null;
  /** Records a policy turn's tokens, in the order in which they were sampled. */
  sampled(tokens: readonly SampledToken[]): void;
  /** Searches, with the events that tell of it. */
  search(query: string): AsyncGenerator<RolloutEvent, SearchOutcome>;
  /** Records a search whose passages stand in the token range [start, end). */
  recordSearch(outcome: SearchOutcome, range: readonly [number, number], seen: readonly Passage[]): void;
  close(): void;
}

export interface SessionCounts {
  promptTokens: number;
  completionTokens: number;
  reasoningTokens: number;
  injectedTokens: number;
  validActions: number;
  invalidActions: number;
}

/** Rough length first, so that a text far beyond the window is refused before it is encoded. */
function encodeWithin(messages: readonly ChatMessage[], tokenizer: Tokenizer, window: number): number[] {
  const refuse = (count: string): never => {
    throw new ContextLengthError(
      `the maximum context length is ${window} tokens and one must be left for the answer, but the prompt has ${count}`,
    );
  };
  const bytes = messages.reduce((sum, message) => sum + Buffer.byteLength(message.content), 0);
  const atLeast = tokenizer.minimumTokens(bytes);
  if (atLeast >= window) refuse(`at least ${atLeast}`);
  const ids = tokenizer.encodeChat(messages, { addGenerationPrompt: true });
  if (ids.length >= window) refuse(String(ids.length));
  return ids;
}

export function createSession(house: RolloutHouse, request: RolloutRequest): Session {
  const { generator, tokenizer, config } = house;
  const { signal } = request;
  let sequence: GenerationSequence | null = null;
  let builder: TrajectoryBuilder | null = null;
  let opensInThought = false;
  let forced = false;
  const counts: SessionCounts = {
    promptTokens: 0,
    completionTokens: 0,
    reasoningTokens: 0,
    injectedTokens: 0,
    validActions: 0,
    invalidActions: 0,
  };
  const close = (): void => sequence?.close();
  const opened = (): { sequence: GenerationSequence; builder: TrajectoryBuilder } => {
    if (sequence === null || builder === null) throw new IntegrityError('the rollout has no sequence yet');
    if (sequence.length !== builder.length)
      throw new IntegrityError(`the sequence has ${sequence.length} tokens, its record ${builder.length}`);
    return { sequence, builder };
  };
  let searcher: ((query: string) => Promise<SearchOutcome>) | null = null;
  let searches = 0;

  const session: Session = {
    request,
    house,
    get builder() {
      return builder;
    },
    get sequence() {
      return sequence;
    },
    get forced() {
      return forced;
    },
    get opensInThought() {
      return opensInThought;
    },
    counts,
    answer: '',
    fallback: false,
    shownTail: { reasoning: '', answer: '' },
    seen: [],
    encodePrompt: (messages) => encodeWithin(messages, tokenizer, generator.info.maxSequenceTokens),
    async open(promptIds) {
      sequence = await generator.open({
        ...(request.adapter === undefined ? {} : { adapter: request.adapter }),
        ...(request.seed === undefined ? {} : { seed: request.seed }),
        ...(signal === undefined ? {} : { signal }),
      });
      builder = createTrajectoryBuilder({ tokenizer, adapterVersion: sequence.adapterVersion });
      signal?.addEventListener('abort', close, { once: true });
      if (signal?.aborted) close();
      sequence.append(promptIds);
      builder.prompt(promptIds);
      counts.promptTokens = promptIds.length;
      opensInThought = /<think>\s*$/.test(tokenizer.decode(promptIds.slice(-16)));
    },
    room: () => {
      const now = opened();
      return now.sequence.maxLength - now.sequence.length;
    },
    allowance: () => (request.maxTokens ?? Number.POSITIVE_INFINITY) - counts.completionTokens,
    observe(kind, ids) {
      const now = opened();
      if (ids.length + 1 > session.room()) return null;
      now.sequence.append(ids);
      forced ||= kind === 'forced';
      counts.injectedTokens += ids.length;
      return now.builder.environment(kind, ids);
    },
    sampled(tokens) {
      if (builder === null) throw new IntegrityError('the rollout has no sequence yet');
      builder.sampled({
        ids: tokens.map((token) => token.id),
        logprobs: tokens.map((token) => token.logprob),
        samplingLogprobs: tokens.map((token) => token.samplingLogprob),
      });
      counts.completionTokens += tokens.length;
    },
    async *search(query) {
      if (house.retriever === null)
        throw new UnavailableError(`method "${request.method}" searches, but no index is loaded`);
      searcher ??= createSearcher({
        retriever: house.retriever,
        topK: request.topK ?? config.topK,
        retries: config.retrieverRetries,
        retryDelayMs: house.retryDelayMs ?? 200,
        signal,
      });
      const index = searches++;
      yield { type: 'search.query', index, query };
      const outcome = await searcher(query);
      const { passages, durationMs, error } = outcome;
      yield { type: 'search.results', index, query, passages, durationMs, error };
      return outcome;
    },
    recordSearch(outcome, range, seen) {
      session.seen.push(seen);
      builder?.search({
        query: outcome.query,
        passageIds: outcome.passages.map((passage) => passage.id),
        scores: outcome.passages.map((passage) => passage.score),
        durationMs: outcome.durationMs,
        error: outcome.error,
        duplicate: outcome.duplicate,
        observation: range,
      });
    },
    close() {
      signal?.removeEventListener('abort', close);
      close();
    },
  };
  return session;
}
