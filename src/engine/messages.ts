// What passes between the engine's worker and the thread that uses it. Commands go down in batches and are not answered
// one by one; what every step brought comes back as one broadcast.

import type { EngineConfig } from '../config/index.js';
import type { EngineGraphs, LayoutData } from '../model/index.js';
import type { Method } from '../runtime/index.js';
import type { TokenizerSource } from '../tokenizer/index.js';
import type { TokenAlternative, TurnOptions, TurnStopReason } from './generator.js';

/** Adapter version of the base model. */
export const BASE_VERSION = 'base';

export interface EngineSettings extends EngineConfig {
  /** Fixed slots and fixed batch size, so that runs can be repeated bit for bit. */
  readonly lockStep: boolean;
  /** Whether onnxruntime's threads spin while they wait. */
  readonly spinning: boolean;
}

/** What the worker is started with. */
export interface EngineStart {
  readonly graphs: EngineGraphs;
  readonly tokenizer: TokenizerSource;
  readonly settings: EngineSettings;
}

export type Command =
  | {
      readonly kind: 'open';
      readonly sequence: number;
      readonly version: string;
      readonly seed: number;
      readonly maxLength: number;
      readonly slot: number | null;
    }
  | { readonly kind: 'append'; readonly sequence: number; readonly ids: Int32Array }
  | {
      readonly kind: 'generate';
      readonly sequence: number;
      readonly turn: number;
      readonly options: TurnOptions;
    }
  /** `length`: tokens of the sequence that the caller saw; later ones are forgotten. */
  | { readonly kind: 'cancel'; readonly sequence: number; readonly turn: number; readonly length: number }
  /** The caller read this many further steps. */
  | { readonly kind: 'read'; readonly sequence: number; readonly turn: number; readonly steps: number }
  | { readonly kind: 'close'; readonly sequence: number };

/** One sampled token. */
export interface StepEvent {
  readonly sequence: number;
  readonly turn: number;
  readonly id: number;
  readonly logprob: number;
  readonly samplingLogprob: number;
  readonly text: string;
  readonly alternatives: readonly TokenAlternative[] | undefined;
}

export interface EndEvent {
  readonly sequence: number;
  readonly turn: number;
  readonly reason: TurnStopReason;
  readonly stopString: string | null;
  readonly text: string;
}

/** A sequence whose first prompt begins with tokens that had been read before. */
export interface BeginEvent {
  readonly sequence: number;
  /** Leading tokens whose keys and values were shared instead of computed. */
  readonly cachedTokens: number;
}

/** A sequence that cannot go on; its slot is free. */
export interface FailureEvent {
  readonly sequence: number;
  readonly error: { readonly kind: 'non_finite' | 'runtime'; readonly message: string };
}

export interface EngineEvents {
  readonly begins: readonly BeginEvent[];
  readonly steps: readonly StepEvent[];
  readonly ends: readonly EndEvent[];
  readonly failures: readonly FailureEvent[];
}

/** What the worker computes with. */
export interface WorkerDescription {
  readonly onnxruntimeVersion: string;
}

export interface LoadedAdapter {
  readonly version: string;
  readonly rank: number;
}

/** An adapter that was read and laid out, on its way to the thread that decodes. */
export interface ReadAdapter extends LoadedAdapter {
  readonly layout: LayoutData;
}

/** Counters since the worker started; times in milliseconds. */
export interface EngineProfile {
  readonly decodeSteps: number;
  readonly decodeRows: number;
  /** Rows of decode runs that stood for no token. */
  readonly idleRows: number;
  readonly decodeRunMs: number;
  /** Time of decode steps outside of the run: building inputs, sampling, decoding text. */
  readonly decodeOtherMs: number;
  readonly prefillRuns: number;
  readonly prefillTokens: number;
  readonly prefillRunMs: number;
  /** Prompt tokens whose keys and values were shared instead of computed. */
  readonly sharedTokens: number;
  readonly moves: number;
}

export interface EngineMethods {
  describe: Method<void, WorkerDescription>;
  commands: Method<readonly Command[], void>;
  addAdapter: Method<ReadAdapter, void>;
  /** To be called after the sequences of the version were closed. */
  dropAdapter: Method<{ readonly version: string }, void>;
  profile: Method<void, EngineProfile>;
}

/** Of the thread that reads adapters. */
export interface ReaderMethods {
  read: Method<{ readonly folder: string }, ReadAdapter>;
}
