// The sequence in the engine and the record beside it, grown together, token for token.

import type { GenerationSequence, Generator, SampledToken } from '../engine/index.js';
import { IntegrityError, NotFoundError } from '../errors.js';
import type { Tokenizer } from '../tokenizer/index.js';
import {
  createTrajectoryBuilder,
  type ObservationRecord,
  type TrajectoryBuilder,
} from '../trajectory/index.js';
import type { RolloutRequest } from './events.js';

export interface Ledger {
  readonly sequence: GenerationSequence;
  readonly builder: TrajectoryBuilder;
  /** The chat template left a `<think>` open. */
  readonly opensInThought: boolean;
  /** The environment opened the answer. */
  readonly forced: boolean;
  readonly promptTokens: number;
  readonly injectedTokens: number;
  readonly completionTokens: number;
  /** Tokens that still fit into the sequence. */
  room(): number;
  /** Appends an observation; null when it does not fit with at least one token after it. */
  observe(kind: ObservationRecord['kind'], ids: readonly number[]): readonly [number, number] | null;
  /** Records a policy turn's tokens, in the order in which they were sampled. */
  sampled(tokens: readonly SampledToken[]): void;
  /** Frees the slot. Idempotent; so does the request's signal. */
  close(): void;
}

/**
 * Takes a slot and appends the prompt.
 * Throws what `Generator.open` throws; the ledger's methods throw {IntegrityError} when sequence and record
 * have lost step.
 */
export async function openLedger(
  generator: Generator,
  tokenizer: Tokenizer,
  request: RolloutRequest,
  promptIds: readonly number[],
): Promise<Ledger> {
  const { signal } = request;
  const sequence = await openSequence(generator, request);
  const builder = createTrajectoryBuilder({ tokenizer, adapterVersion: sequence.adapterVersion });
  builder.prompt(promptIds);
  const closeSequence = (): void => sequence.close();
  signal?.addEventListener('abort', closeSequence, { once: true });
  try {
    if (signal?.aborted) closeSequence();
    else sequence.append(promptIds);
  } catch (error) {
    closeSequence();
    throw error;
  }
  const state = { forced: false, injectedTokens: 0, completionTokens: 0 };
  const room = (): number => {
    if (sequence.length !== builder.length)
      throw new IntegrityError(`the sequence has ${sequence.length} tokens, its record ${builder.length}`);
    return sequence.maxLength - sequence.length;
  };
  return {
    sequence,
    builder,
    opensInThought: /<think>\s*$/.test(tokenizer.decode(promptIds.slice(-16))),
    promptTokens: promptIds.length,
    get forced() {
      return state.forced;
    },
    get injectedTokens() {
      return state.injectedTokens;
    },
    get completionTokens() {
      return state.completionTokens;
    },
    room,
    observe(kind, ids) {
      if (ids.length + 1 > room()) return null;
      sequence.append(ids);
      state.forced ||= kind === 'forced';
      state.injectedTokens += ids.length;
      return builder.environment(kind, ids);
    },
    sampled(tokens) {
      builder.sampled({
        ids: tokens.map((token) => token.id),
        logprobs: tokens.map((token) => token.logprob),
        samplingLogprobs: tokens.map((token) => token.samplingLogprob),
      });
      state.completionTokens += tokens.length;
    },
    close() {
      signal?.removeEventListener('abort', closeSequence);
      closeSequence();
    },
  };
}

async function openSequence(generator: Generator, request: RolloutRequest): Promise<GenerationSequence> {
  const { adapter, expectedVersion, seed, signal } = request;
  const options = {
    ...(adapter === undefined ? {} : { adapter }),
    ...(seed === undefined ? {} : { seed }),
    ...(signal === undefined ? {} : { signal }),
  };
  if (expectedVersion === undefined) return generator.open(options);
  try {
    return await generator.open({ ...options, adapter: expectedVersion });
  } catch (error) {
    // It was unloaded meanwhile: what the adapter stands for now answers.
    if (error instanceof NotFoundError) return generator.open(options);
    throw error;
  }
}
