// What the rest of the house sees of the engine: token ids in; ids, log-probabilities, decoded text and a
// stop reason out. It knows no tags; stop strings are matched on incrementally decoded text.

/** Sampling settings of one turn. Defaults are the raw policy: temperature 1, nothing cut, no penalty. */
export interface SamplingParameters {
  /** 0 is greedy (arg max, lowest id on a tie). */
  readonly temperature: number;
  /** Nucleus share in (0, 1]; 1 keeps everything. */
  readonly topP: number;
  /** Number of tokens kept; 0 keeps everything. */
  readonly topK: number;
  /** Share of the top probability below which tokens are cut; 0 keeps everything. */
  readonly minP: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  /** Multiplicative, on tokens of prompt and output; 1 does nothing. */
  readonly repetitionPenalty: number;
  /** Token id to addend on its logit (-100 bans, 100 forces). */
  readonly logitBias: Readonly<Record<number, number>>;
}

export interface TurnOptions {
  readonly sampling: SamplingParameters;
  /** Most tokens to sample in this turn, at least 1. */
  readonly maxTokens: number;
  /** Generation stops at the first of these in the decoded text of this turn. */
  readonly stopStrings: readonly string[];
  /** Generation stops after sampling one of these; empty means the model's own end tokens. */
  readonly stopTokenIds: readonly number[];
  /** Do not stop at the model's own end tokens. */
  readonly ignoreEos?: boolean;
  /** Number of alternatives to report a token, 0 to 20. */
  readonly topLogprobs?: number;
}

export interface TokenAlternative {
  readonly id: number;
  /** Nats, raw policy. */
  readonly logprob: number;
}

export interface SampledToken {
  readonly id: number;
  /** Nats, under the raw policy (softmax of the unmodified logits). Finite, <= 0. */
  readonly logprob: number;
  /** Nats, under the renormalised distribution it was sampled from; 0 when greedy. */
  readonly samplingLogprob: number;
  readonly alternatives?: readonly TokenAlternative[];
}

/** One decode step of a sequence. */
export interface TurnStep {
  readonly token: SampledToken;
  /** Decoded text that became safe to show: no half character, nothing that may still become a stop string. */
  readonly text: string;
}

/** Why a turn ended. `context`: the sequence reached its most tokens. */
export type TurnStopReason = 'stop_string' | 'stop_token' | 'max_tokens' | 'context' | 'cancelled';

export interface TurnEnd {
  readonly reason: TurnStopReason;
  /** The stop string that matched, for `stop_string`. */
  readonly stopString: string | null;
  /** Held-back text that is now safe. Never the stop string nor what follows it. */
  readonly text: string;
  /** Sampled text of the turn before the stop string (the joined deltas and `text`). */
  readonly fullText: string;
}

/** Yields one step per sampled token and returns the end. Leaving the loop early cancels the turn. */
export type Turn = AsyncGenerator<TurnStep, TurnEnd, void>;

/** One growing sequence on one adapter version, from first to last token. Not for concurrent use. */
export interface GenerationSequence {
  /** Content digest of the adapter version, `base` for none. Fixed while the sequence lives. */
  readonly adapterVersion: string;
  /** Tokens so far: appended and sampled. */
  readonly length: number;
  /** Most tokens the sequence may hold. */
  readonly maxLength: number;
  /** Leading prompt tokens that were shared with another sequence instead of computed; known at the first step. */
  readonly cachedTokens: number;
  /**
   * Appends tokens that were not sampled (prompt, observation). They are prefilled by the next turn.
   * @throws {ContextLengthError} when they do not fit
   */
  append(ids: readonly number[]): void;
  /**
   * Samples until a stop. The stop token, when one ended the turn, is part of the sequence.
   * @throws {NonFiniteError} logits were not finite; the sequence is closed
   * @throws {UnavailableError} the engine stopped or its worker died
   */
  generate(options: TurnOptions): Turn;
  /** Frees the slot. Idempotent; a running turn is cancelled within one step. */
  close(): void;
}

export interface OpenOptions {
  /** Adapter name or version; null for the base model; undefined for the live alias. */
  readonly adapter?: string | null;
  /** Seed of this sequence's sampler; random when absent. */
  readonly seed?: number;
  /** Largest number of tokens the sequence will hold; the engine's limit when absent. */
  readonly maxLength?: number;
  /** Aborting closes the sequence, or gives up the wait for a slot. */
  readonly signal?: AbortSignal;
  /** Lock-step engines only: the slot to use. Without it, the lowest free one in order of opening. */
  readonly slot?: number;
}

export interface EngineInfo {
  readonly modelId: string;
  /** sha256 of the model's description and weights. */
  readonly modelDigest: string;
  readonly precision: 'fp32' | 'q8' | 'q4';
  readonly vocabSize: number;
  /** Most tokens in one sequence. */
  readonly maxSequenceTokens: number;
  readonly eosTokenIds: readonly number[];
  /** Sequences that can hold a slot at once. */
  readonly maxSequences: number;
  /** Changes with anything that can change text for a seed: sampler, model, precision, onnxruntime. */
  readonly fingerprint: string;
}

export interface AdapterInfo {
  readonly name: string;
  /** sha256 of content. */
  readonly version: string;
  readonly rank: number;
  /** Sequences that hold a lease on it now. */
  readonly leases: number;
  readonly path: string;
  /** A work in progress: users are neither told of it nor answered by it. */
  readonly isInternal: boolean;
  /** Why the engine's worker does not have it, so that nothing can be opened with it; null: it has. */
  readonly fault: string | null;
}

export interface LoadOptions {
  readonly replace?: boolean;
  readonly isInternal?: boolean;
}

export interface EngineStats {
  readonly running: number;
  readonly queued: number;
  readonly queueLimit: number;
  readonly freeSlots: number;
}

export interface Generator {
  readonly info: EngineInfo;
  /**
   * Waits for a slot.
   * @throws {OverloadedError} the admission queue is full
   * @throws {NotFoundError} no such adapter
   * @throws {UnavailableError} the engine restarts, or came back without this adapter
   */
  open(options?: OpenOptions): Promise<GenerationSequence>;
  /** Loads a PEFT folder under a name. Same name with other content is an error unless `replace`. */
  loadAdapter(name: string, folder: string, options?: LoadOptions): Promise<AdapterInfo>;
  /** New sequences no longer get it; memory is freed when the last lease ends. */
  unloadAdapter(name: string): Promise<void>;
  listAdapters(): readonly AdapterInfo[];
  /** Points the live alias (what `adapter: undefined` means) at a loaded adapter, or at the base model. */
  setLiveAdapter(name: string | null): Promise<void>;
  /** Null is the base model. */
  readonly liveAdapter: AdapterInfo | null;
  stats(): EngineStats;
  close(): Promise<void>;
}
