import fc from 'fast-check';
import { packMicroBatches } from '../../../src/training/batch/packing.js';

const lengths = fc.array(fc.integer({ min: 0, max: 3000 }), { maxLength: 60 });

test('every sequence with tokens runs once; none but a lone long one passes the limit', () => {
  fc.assert(
    fc.property(lengths, fc.integer({ min: 1, max: 4096 }), (tokens, limit) => {
      const batches = packMicroBatches(tokens, limit);
      expect(batches.flat().sort((a, b) => a - b)).toEqual(
        tokens.flatMap((count, i) => (count > 0 ? [i] : [])),
      );
      for (const batch of batches) {
        const total = batch.reduce((sum, i) => sum + (tokens[i] as number), 0);
        expect(total <= limit || batch.length === 1).toBe(true);
      }
    }),
  );
});

test('no two micro-batches could be one', () => {
  fc.assert(
    fc.property(lengths, (tokens) => {
      const totals = packMicroBatches(tokens).map((batch) =>
        batch.reduce((sum, i) => sum + (tokens[i] as number), 0),
      );
      for (const [i, total] of totals.entries())
        for (const other of totals.slice(i + 1)) expect(total + other).toBeGreaterThan(2048);
    }),
  );
});

test('the longest come first', () => {
  expect(packMicroBatches([10, 900, 1200, 0, 900, 2100])).toEqual(
    [[5], [2, 0], [1, 4]].map((batch) => batch),
  );
});
