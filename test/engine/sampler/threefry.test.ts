import { threefry2x32, uniformAt } from '../../../src/engine/sampler/threefry.js';

const words = (key: [number, number], counter: [number, number]): string[] => {
  const out = new Uint32Array(2);
  threefry2x32(...key, ...counter, out);
  return Array.from(out, (word) => word.toString(16).padStart(8, '0'));
};

// Known answers of the authors' Random123 library (kat_vectors, threefry2x32 20).
test.each([
  [
    [0, 0],
    [0, 0],
    ['6b200159', '99ba4efe'],
  ],
  [
    [-1, -1],
    [-1, -1],
    ['1cb996fc', 'bb002be7'],
  ],
  [
    [0x13198a2e, 0x03707344],
    [0x243f6a88, 0x85a308d3],
    ['c4923a9c', '483df7a0'],
  ],
] as [[number, number], [number, number], string[]][])('known answer %#', (key, counter, expected) => {
  expect(words(key, counter)).toEqual(expected);
});

test('the number of a position is uniform, repeatable and depends on both words of the seed', () => {
  const draws = Array.from({ length: 20_000 }, (_, position) => uniformAt(7, position));
  expect(Math.min(...draws)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...draws)).toBeLessThan(1);
  const mean = draws.reduce((sum, value) => sum + value, 0) / draws.length;
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.01);
  const bins = new Array(16).fill(0);
  for (const draw of draws) bins[Math.floor(draw * 16)]++;
  const chiSquare = bins.reduce((sum, count) => sum + (count - 1250) ** 2 / 1250, 0);
  expect(chiSquare).toBeLessThan(37.7); // 15 degrees of freedom, p = 0.001
  expect(uniformAt(7, 11)).toBe(uniformAt(7, 11));
  const seeds = [0, 1, -1, 7, 7 + 2 ** 32, 7 + 2 ** 40, Number.MAX_SAFE_INTEGER];
  expect(new Set(seeds.map((seed) => uniformAt(seed, 3))).size).toBe(seeds.length);
});
