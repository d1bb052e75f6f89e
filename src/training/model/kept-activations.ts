// Which activations of a batch stay in memory until its backward run: as many as the budget holds, the cheapest to compute
// again being left out first.

import type { DecoderConfig } from '../../model/index.js';
import type { Block } from './attention-blocks.js';

export interface KeptActivations {
  /** Layers below this one are run forward again. */
  readonly layersFrom: number;
  /** Layers from this one on keep the probabilities of attention as well. */
  readonly probabilitiesFrom: number;
  /** Whether a layer that is run again keeps its probabilities for the moment. */
  readonly probabilitiesAgain: boolean;
}

/** Probabilities grow with the square of the length, and are soon computed again: no more of them than this in all... */
const MOST_PROBABILITY_BYTES = 512 * 2 ** 20;
/** ... nor than this part of the budget. */
const PROBABILITY_SHARE = 1 / 4;
/** Nor more than this for a layer that is run again. */
const MOST_PROBABILITY_BYTES_AGAIN = 64 * 2 ** 20;

export function planKept(
  config: DecoderConfig,
  tokens: number,
  blocks: readonly Block[],
  budget: number,
): KeptActivations {
  const { layers, hiddenSize } = config;
  const inputs = 4 * tokens * hiddenSize * (layers + 1);
  const layer = 4 * tokens * numbersPerToken(config);
  const kept = Math.min(layers, Math.floor(Math.max(0, budget - inputs) / layer));
  const probabilities = 4 * config.heads * blocks.reduce((sum, { queries, keys }) => sum + queries * keys, 0);
  const left =
    kept < layers
      ? 0
      : Math.min(budget - inputs - kept * layer, MOST_PROBABILITY_BYTES, budget * PROBABILITY_SHARE);
  return {
    layersFrom: layers - kept,
    probabilitiesFrom: layers - Math.min(layers, Math.floor(left / Math.max(1, probabilities))),
    probabilitiesAgain: probabilities <= MOST_PROBABILITY_BYTES_AGAIN,
  };
}

/** What a layer keeps of a token beside its input: queries, keys, values, attention, the middle, gate and up. */
function numbersPerToken({
  heads,
  kvHeads,
  headDim,
  hiddenSize,
  intermediateSize,
  qkNorm,
}: DecoderConfig): number {
  const unnormed = qkNorm ? (heads + kvHeads) * headDim : 0;
  return unnormed + (2 * heads + 2 * kvHeads) * headDim + hiddenSize + 2 * intermediateSize;
}
