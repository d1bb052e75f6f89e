// Figures of a step as sums that add up over micro-batches.

import type { MetricSums } from './objective.js';

export const NO_METRICS: MetricSums = { sums: {}, counts: {}, maxima: {} };

/** Collects the sums of one micro-batch. */
export class MetricBuilder {
  readonly #sums: Record<string, number> = {};
  readonly #counts: Record<string, number> = {};
  readonly #maxima: Record<string, number> = {};

  /** A mean over all that is observed. */
  observe(name: string, value: number, count = 1): void {
    this.#sums[name] = (this.#sums[name] ?? 0) + value;
    this.#counts[name] = (this.#counts[name] ?? 0) + count;
  }

  /** A part of a whole-batch figure: summed, never divided. */
  add(name: string, value: number): void {
    this.#sums[name] = (this.#sums[name] ?? 0) + value;
  }

  maximum(name: string, value: number): void {
    this.#maxima[name] = Math.max(this.#maxima[name] ?? Number.NEGATIVE_INFINITY, value);
  }

  build(): MetricSums {
    return { sums: this.#sums, counts: this.#counts, maxima: this.#maxima };
  }
}

export function addMetrics(a: MetricSums, b: MetricSums): MetricSums {
  const maxima: Record<string, number> = { ...a.maxima };
  for (const [name, value] of Object.entries(b.maxima)) {
    maxima[name] = Math.max(maxima[name] ?? Number.NEGATIVE_INFINITY, value);
  }
  return { sums: addRecords(a.sums, b.sums), counts: addRecords(a.counts, b.counts), maxima };
}

/** Means, whole-batch sums and maxima by name. A mean over nothing is left out. */
export function summariseMetrics(metrics: MetricSums): Record<string, number> {
  const figures: Record<string, number> = { ...metrics.maxima };
  for (const [name, value] of Object.entries(metrics.sums)) {
    const count = metrics.counts[name];
    if (count === undefined) figures[name] = value;
    else if (count > 0) figures[name] = value / count;
  }
  return figures;
}

function addRecords(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Record<string, number> {
  const total: Record<string, number> = { ...a };
  for (const [name, value] of Object.entries(b)) total[name] = (total[name] ?? 0) + value;
  return total;
}
