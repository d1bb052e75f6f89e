import { derivedSeed } from '../../src/util/derived-seed.js';

test('seeds differ by every part and its kind, and are the same for the same parts', () => {
  expect(derivedSeed(1, 'a', 2)).not.toBe(derivedSeed(1, 'a2'));
  expect(derivedSeed(1, 'a', 2)).not.toBe(derivedSeed(1, 'a', '2'));
  expect(derivedSeed(7, 'x')).toBe(derivedSeed(7, 'x'));
});
