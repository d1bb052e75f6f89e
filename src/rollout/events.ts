// The one event stream that every method yields, and what a rollout takes.

import type { SampledToken, SamplingParameters } from '../engine/index.js';
import type { Passage } from '../retrieval/index.js';
import type { ChatMessage } from '../tokenizer/index.js';
import type { FeedbackInput, RecordNotes, TrajectoryRecord } from '../trajectory/index.js';

export type MethodName = 'search-r1' | 'rag' | 'cot' | 'direct' | 'chat';

export interface RolloutRequest {
  readonly method: MethodName;
  /** Whole conversation; the last user message holds the question. */
  readonly messages: readonly ChatMessage[];
  readonly sampling: SamplingParameters;
  /** Most sampled tokens over all turns. */
  readonly maxTokens?: number;
  /** Strings that end the answer (they act on answer text only). */
  readonly stop?: readonly string[];
  readonly stopTokenIds?: readonly number[];
  readonly ignoreEos?: boolean;
  readonly seed?: number;
  /** Adapter name or version; undefined is the live one, null the base model. */
  readonly adapter?: string | null;
  /**
   * The version that `adapter` stood for when the question came. It answers while it is still loaded, so that what
   * was said of the version stays true when another goes live meanwhile.
   */
  readonly expectedVersion?: string;
  readonly actionBudget?: number;
  readonly topK?: number;
  readonly topLogprobs?: number;
  /** Append `<answer>` when the budget ends without one (rule 11). Serving: true; evaluation, training: false. */
  readonly forceAnswer?: boolean;
  readonly signal?: AbortSignal;
  /** What is said of the record where it is kept; null: nothing is kept. */
  readonly keeping?: Keeping | null;
  readonly id?: string;
  readonly groupId?: string;
}

/** Notes beside a record, and gold answers that came with the request. */
export interface Keeping {
  readonly notes: RecordNotes;
  readonly feedback: FeedbackInput | null;
}

export interface Citation {
  readonly passage: Passage;
  /** UTF-16 offsets in the answer. */
  readonly start: number;
  readonly end: number;
}

export interface RolloutUsage {
  /** First prompt and injected observations. */
  readonly promptTokens: number;
  /** The beginning of the first prompt that was shared with an earlier one instead of computed. */
  readonly cachedTokens: number;
  /** All sampled tokens. */
  readonly completionTokens: number;
  /** Sampled outside the answer. */
  readonly reasoningTokens: number;
  /** Observation tokens the environment appended. */
  readonly injectedTokens: number;
  readonly searches: number;
}

export type RolloutFinish = 'stop' | 'length' | 'cancelled';

export type RolloutEvent =
  | { readonly type: 'reasoning.delta'; readonly text: string }
  | { readonly type: 'search.query'; readonly index: number; readonly query: string }
  | {
      readonly type: 'search.results';
      readonly index: number;
      readonly query: string;
      readonly passages: readonly Passage[];
      readonly durationMs: number;
      readonly error: string | null;
    }
  | { readonly type: 'answer.delta'; readonly text: string; readonly tokens: readonly SampledToken[] }
  | {
      readonly type: 'done';
      /** Answer text without its tags; '' when there is none. Equals the joined answer deltas. */
      readonly answer: string;
      readonly finish: RolloutFinish;
      readonly citations: readonly Citation[];
      readonly usage: RolloutUsage;
      readonly record: TrajectoryRecord;
      /** Whether the record is known to be stored; null where it shall not be. */
      readonly stored: boolean | null;
    };

/** Yields events and ends after `done`. A failure throws; leaving early cancels sampling and search. */
export type Rollout = AsyncGenerator<RolloutEvent, void, void>;
