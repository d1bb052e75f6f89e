import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { overlongPenalty } from '../../../../src/training/algorithms/advantages/overlong.js';

const path = join(__dirname, '..', '..', '..', 'fixtures', 'losses', 'rewards.json');
const { overlong } = JSON.parse(readFileSync(path, 'utf8')) as {
  overlong: { length: number; maxLength: number; cache: number; trl: number }[];
};

test.each(overlong)('$length of $maxLength tokens', ({ length, maxLength, cache, trl }) => {
  expect(overlongPenalty(length, { maxTokens: maxLength, cacheTokens: cache })).toBeCloseTo(trl, 12);
});

test('a cache that does not fit is refused', () => {
  expect(() => overlongPenalty(1, { maxTokens: 5, cacheTokens: 0 })).toThrow('0 < cacheTokens <= maxTokens');
  expect(() => overlongPenalty(1, { maxTokens: 5, cacheTokens: 6 })).toThrow('got 6 and 5');
});
