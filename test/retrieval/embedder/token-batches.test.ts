import fc from 'fast-check';
import { batchByLength } from '../../../src/retrieval/embedder/token-batches.js';

test('like lengths stand together, longest first', () => {
  expect(batchByLength([3, 9, 4, 8, 1], 18)).toEqual([
    { rows: [1, 3], length: 9 },
    { rows: [2, 0, 4], length: 4 },
  ]);
  expect(batchByLength([50], 18)).toEqual([{ rows: [0], length: 50 }]);
  expect(batchByLength([], 18)).toEqual([]);
});

test('every row is in one batch, fits in it, and no batch exceeds the budget unless it is one row', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 300 })),
      fc.integer({ min: 1, max: 1000 }),
      (lengths, budget) => {
        const batches = batchByLength(lengths, budget);
        expect(batches.flatMap(({ rows }) => rows).sort((a, b) => a - b)).toEqual(
          lengths.map((_, row) => row),
        );
        for (const { rows, length } of batches) {
          expect(Math.max(...rows.map((row) => lengths[row]!), 1)).toBe(length);
          expect(rows.length === 1 || rows.length * length <= budget).toBe(true);
        }
      },
    ),
  );
});
