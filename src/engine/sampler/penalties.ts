// Penalties and logit bias change few logits of a row. They are written into the row itself and undone after the
// draw, so that the raw values stay readable and no row is copied.

import type { SamplingParameters } from '../generator.js';

/** What a sequence holds so far, as far as penalties ask for it. */
export class TokenCounts {
  /** Distinct tokens in order of first appearance. */
  readonly ids: number[] = [];
  /** How often each of `ids` was sampled (appended tokens count 0). */
  readonly sampled: number[] = [];
  readonly #placeOf = new Map<number, number>();

  add(id: number, wasSampled: boolean): void {
    let place = this.#placeOf.get(id);
    if (place === undefined) {
      place = this.ids.length;
      this.#placeOf.set(id, place);
      this.ids.push(id);
      this.sampled.push(0);
    }
    if (wasSampled) this.sampled[place] = (this.sampled[place] as number) + 1;
  }
}

/** Whether a turn with these settings needs {@link TokenCounts}. */
export function needsCounts(sampling: SamplingParameters): boolean {
  return (
    sampling.frequencyPenalty !== 0 || sampling.presencePenalty !== 0 || sampling.repetitionPenalty !== 1
  );
}

/** Logits overwritten in a row, with what stood there. Reused from row to row. */
export class RowChanges {
  readonly #places: number[] = [];
  readonly #values: number[] = [];
  #count = 0;

  set(logits: Float32Array, place: number, value: number): void {
    this.#places[this.#count] = place;
    this.#values[this.#count] = logits[place] as number;
    this.#count++;
    logits[place] = value;
  }

  /** The value before all changes. */
  raw(logits: Float32Array, place: number): number {
    for (let i = 0; i < this.#count; i++) if (this.#places[i] === place) return this.#values[i] as number;
    return logits[place] as number;
  }

  undo(logits: Float32Array): void {
    for (let i = this.#count - 1; i >= 0; i--) logits[this.#places[i] as number] = this.#values[i] as number;
    this.#count = 0;
  }
}

/** Logit bias as parallel arrays, in ascending id. */
export interface BiasList {
  readonly ids: readonly number[];
  readonly values: readonly number[];
}

export function biasList(logitBias: SamplingParameters['logitBias']): BiasList {
  const entries = Object.entries(logitBias)
    .map(([id, value]) => [Number(id), value] as const)
    .filter(([, value]) => value !== 0);
  return { ids: entries.map(([id]) => id), values: entries.map(([, value]) => value) };
}

/**
 * In this order: repetition penalty on every token present (a positive logit is divided, a negative one multiplied),
 * then for sampled tokens `logit - count * frequency - presence`, then the bias is added.
 */
export function applyPenalties(
  logits: Float32Array,
  offset: number,
  sampling: SamplingParameters,
  counts: TokenCounts | null,
  bias: BiasList,
  changes: RowChanges,
): void {
  if (counts !== null) {
    const { repetitionPenalty, frequencyPenalty, presencePenalty } = sampling;
    for (let i = 0; i < counts.ids.length; i++) {
      const place = offset + (counts.ids[i] as number);
      let value = logits[place] as number;
      value = value > 0 ? value / repetitionPenalty : value * repetitionPenalty;
      const times = counts.sampled[i] as number;
      if (times > 0) value -= times * frequencyPenalty + presencePenalty;
      changes.set(logits, place, value);
    }
  }
  for (let i = 0; i < bias.ids.length; i++) {
    const place = offset + (bias.ids[i] as number);
    changes.set(logits, place, (logits[place] as number) + (bias.values[i] as number));
  }
}
