// Draws one token from one row of logits. Pure but for its scratch space: the result depends on the row, the settings,
// the counts and the uniform number only.

import type { SamplingParameters, TokenAlternative } from '../generator.js';
import { KeptTokens } from './kept-tokens.js';
import { placeOfSum, sumOfExp } from './negative-exp.js';
import {
  applyPenalties,
  type BiasList,
  biasList,
  needsCounts,
  RowChanges,
  type TokenCounts,
} from './penalties.js';
import { argMax, logSumExp, topAlternatives } from './row-scan.js';

/** Sampling settings in the form the hot loop wants; made once a turn. */
export interface PreparedSampling {
  readonly parameters: SamplingParameters;
  readonly bias: BiasList;
  readonly usesCounts: boolean;
  /** Whether the row's logits are changed before the draw. */
  readonly changesLogits: boolean;
  readonly cuts: boolean;
  readonly topLogprobs: number;
}

export function prepareSampling(parameters: SamplingParameters, topLogprobs = 0): PreparedSampling {
  const bias = biasList(parameters.logitBias);
  const usesCounts = needsCounts(parameters);
  return {
    parameters,
    bias,
    usesCounts,
    changesLogits: usesCounts || bias.ids.length > 0,
    cuts: parameters.topK > 0 || parameters.topP < 1 || parameters.minP > 0,
    topLogprobs,
  };
}

/** Result of the last draw, overwritten by the next. */
export interface Draw {
  id: number;
  /** Nats, raw policy. */
  logprob: number;
  /** Nats, distribution drawn from; 0 when greedy. */
  samplingLogprob: number;
  alternatives: TokenAlternative[] | undefined;
}

const BLOCK = 1024;

export class Sampler {
  readonly draw: Draw = { id: 0, logprob: 0, samplingLogprob: 0, alternatives: undefined };
  readonly #changes = new RowChanges();
  readonly #blocks: Float64Array;
  #kept: KeptTokens | null = null;

  constructor(readonly vocabSize: number) {
    this.#blocks = new Float64Array(Math.ceil(vocabSize / BLOCK));
  }

  /**
   * @param logits     f32, row of V values at `offset`; unchanged after the call
   * @param normaliser log sum exp of the raw row where the graph computes it, else NaN: computed here
   * @param counts     tokens of the sequence, where `prepared.usesCounts`
   * @param uniform    in [0, 1); not read when greedy
   * @returns false when the row is not finite (NaN or +Infinity anywhere, or nothing finite): `draw` is then undefined
   */
  sample(
    logits: Float32Array,
    offset: number,
    normaliser: number,
    prepared: PreparedSampling,
    counts: TokenCounts | null,
    uniform: number,
  ): boolean {
    const { draw, vocabSize } = this;
    const raw = Number.isFinite(normaliser) ? normaliser : logSumExp(logits, offset, vocabSize);
    if (!Number.isFinite(raw)) return false;
    draw.alternatives =
      prepared.topLogprobs > 0
        ? topAlternatives(logits, offset, vocabSize, raw, prepared.topLogprobs)
        : undefined;
    const { parameters } = prepared;
    if (prepared.changesLogits)
      applyPenalties(
        logits,
        offset,
        parameters,
        prepared.usesCounts ? counts : null,
        prepared.bias,
        this.#changes,
      );
    if (parameters.temperature === 0) {
      draw.id = argMax(logits, offset, vocabSize);
      draw.samplingLogprob = 0;
    } else if (prepared.cuts) this.#drawKept(logits, offset, parameters, uniform);
    else if (parameters.temperature === 1 && !prepared.changesLogits)
      this.#drawRaw(logits, offset, raw, uniform);
    else this.#drawTempered(logits, offset, 1 / parameters.temperature, uniform);
    const place = offset + draw.id;
    const value = prepared.changesLogits ? this.#changes.raw(logits, place) : (logits[place] as number);
    draw.logprob = Math.min(0, value - raw);
    if (prepared.changesLogits) this.#changes.undo(logits);
    return Number.isFinite(draw.logprob);
  }

  /** Inverse distribution function over ids in order; stops as soon as the draw is decided. */
  #drawRaw(logits: Float32Array, offset: number, normaliser: number, uniform: number): void {
    const end = offset + this.vocabSize;
    const place = placeOfSum(logits, offset, end, normaliser, 1, uniform);
    // Rounding can leave the whole sum below the draw.
    this.draw.id = place < end ? place - offset : argMax(logits, offset, this.vocabSize);
    this.draw.samplingLogprob = Math.min(0, (logits[offset + this.draw.id] as number) - normaliser);
  }

  #drawTempered(logits: Float32Array, offset: number, inverse: number, uniform: number): void {
    const { vocabSize } = this;
    const blocks = this.#blocks;
    const end = offset + vocabSize;
    const best = argMax(logits, offset, vocabSize);
    const top = logits[offset + best] as number;
    let total = 0;
    for (let block = 0; block < blocks.length; block++) {
      const start = offset + block * BLOCK;
      const sum = sumOfExp(logits, start, Math.min(start + BLOCK, end), top, inverse);
      blocks[block] = sum;
      total += sum;
    }
    const target = uniform * total;
    let before = 0;
    let block = 0;
    while (block < blocks.length - 1 && before + (blocks[block] as number) <= target)
      before += blocks[block++] as number;
    const start = offset + block * BLOCK;
    const last = Math.min(start + BLOCK, end);
    const place = placeOfSum(logits, start, last, top, inverse, target - before);
    this.draw.id = place < last ? place - offset : best;
    this.draw.samplingLogprob = Math.min(
      0,
      ((logits[offset + this.draw.id] as number) - top) * inverse - Math.log(total),
    );
  }

  #drawKept(logits: Float32Array, offset: number, parameters: SamplingParameters, uniform: number): void {
    const kept = (this.#kept ??= new KeptTokens(this.vocabSize));
    kept.select(logits, offset, parameters);
    const target = uniform * kept.mass;
    let sum = 0;
    let chosen = kept.count - 1;
    for (let i = 0; i < kept.count; i++) {
      sum += kept.weights[i] as number;
      if (sum > target) {
        chosen = i;
        break;
      }
    }
    this.draw.id = kept.ids[chosen] as number;
    this.draw.samplingLogprob = Math.min(0, Math.log((kept.weights[chosen] as number) / kept.mass));
  }
}
