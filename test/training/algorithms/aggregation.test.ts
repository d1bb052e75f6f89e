import { type Aggregation, tokenWeights } from '../../../src/training/algorithms/aggregation.js';
import { type Matrix, readLosses } from './support.js';

interface AggregationCase {
  readonly case: string;
  readonly mask: Matrix;
  readonly loss: Matrix;
  readonly norm: number;
  readonly ours: Readonly<Record<Aggregation, number>>;
  readonly microBatches: {
    readonly rows: readonly (readonly [number, number])[];
    readonly partialSums: Readonly<Record<Aggregation, readonly number[]>>;
  };
}

const modes = ['seq-mean-token-mean', 'token-mean', 'seq-mean-token-sum-norm'] as const;

describe.each(readLosses<AggregationCase>('aggregation'))('$case', (c) => {
  test.each(modes)('%s: whole and in micro-batches', (mode) => {
    const counts = c.mask.map((row) => row.reduce((a, b) => a + b, 0));
    const weights = tokenWeights(counts, mode, c.norm);
    const part = (from: number, to: number): number => {
      let total = 0;
      for (let s = from; s < to; s++) {
        c.loss[s]!.forEach((value, t) => {
          total += weights[s]! * value * c.mask[s]![t]!;
        });
      }
      return total;
    };
    expect(part(0, c.mask.length)).toBeCloseTo(c.ours[mode], 7);
    c.microBatches.rows.forEach(([from, to], i) => {
      expect(part(from, to)).toBeCloseTo(c.microBatches.partialSums[mode][i]!, 7);
    });
  });
});

test('a batch without tokens has weights of 0, and a norm must be positive', () => {
  for (const mode of modes) expect(Array.from(tokenWeights([0, 0], mode, 5))).toEqual([0, 0]);
  expect(() => tokenWeights([1], 'seq-mean-token-sum-norm', 0)).toThrow('tokenSumNorm must be positive');
});
