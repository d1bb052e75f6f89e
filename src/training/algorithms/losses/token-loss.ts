// What every policy loss is: a function over the sampled tokens of one sequence.

import type { AlgorithmSettings } from '../settings.js';

/** One sequence, compacted: entry i belongs to its i-th sampled token. All of length n, nats. */
export interface TokenLossInput {
  readonly logprobs: Float64Array;
  /** Detached. */
  readonly logprobsOld: Float64Array;
  readonly advantages: Float64Array;
  /** Truncated importance weights, detached; 1 without engine log-probabilities. */
  readonly weights: Float64Array;
  /** 1 on tokens that the loss singled out over the batch; null for losses that single out none. */
  readonly chosen: Uint8Array | null;
}

export interface TokenLossOutput {
  /** [n], before aggregation. */
  readonly losses: Float64Array;
  /** [n], d loss / d logprob, before aggregation. */
  readonly gradients: Float64Array;
  /** Tokens whose clipped branch is the greater loss: they have no gradient. */
  readonly clipped: number;
  /** Tokens bounded by the dual clip. */
  readonly dualClipped: number;
}

export type TokenLoss = (input: TokenLossInput, settings: AlgorithmSettings) => TokenLossOutput;
