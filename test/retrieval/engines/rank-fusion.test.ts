import { fuseRanks } from '../../../src/retrieval/engines/rank-fusion.js';

const list = (...labels: number[]) => labels.map((label) => ({ label, score: 0 }));

test('score is the sum of 1 / (60 + rank) over the lists', () => {
  expect(fuseRanks([list(7, 8), list(8, 9)], 3)).toEqual([
    { label: 8, score: 1 / 62 + 1 / 61 },
    { label: 7, score: 1 / 61 },
    { label: 9, score: 1 / 62 },
  ]);
});

test('equal scores fall back on the label; k cuts; empty lists give nothing', () => {
  expect(fuseRanks([list(5), list(3)], 10).map(({ label }) => label)).toEqual([3, 5]);
  expect(fuseRanks([list(1, 2, 3), list(3, 2, 1)], 1)).toHaveLength(1);
  expect(fuseRanks([[], []], 5)).toEqual([]);
});
