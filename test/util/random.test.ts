import fc from 'fast-check';
import { derivedSeed } from '../../src/util/derived-seed.js';
import { itemsBetween, randomNumbers, shuffledOrder } from '../../src/util/random.js';

test('a series read in any pieces is one series, and each pass holds every item once', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 5 }),
      fc.nat(),
      fc.array(fc.nat({ max: 200 }), { maxLength: 5 }),
      (count, passes, seed, cuts) => {
        const whole = itemsBetween(0, passes * count, count, seed);
        const borders = [
          0,
          ...cuts.map((cut) => cut % (passes * count)).sort((a, b) => a - b),
          passes * count,
        ];
        const pieces = borders
          .slice(1)
          .flatMap((to, i) => itemsBetween(borders[i] as number, to, count, seed));
        expect(pieces).toEqual(whole);
        for (let pass = 0; pass < passes; pass++)
          expect(whole.slice(pass * count, (pass + 1) * count).sort((a, b) => a - b)).toEqual(
            Array.from({ length: count }, (_, i) => i),
          );
      },
    ),
  );
});

test('numbers are even over [0, 1)', () => {
  const next = randomNumbers(derivedSeed(3));
  const counts = new Array(10).fill(0);
  for (let i = 0; i < 20_000; i++) counts[Math.floor(next() * 10)]++;
  for (const count of counts) expect(Math.abs(count - 2000)).toBeLessThan(200);
  expect(shuffledOrder(6, 1)).not.toEqual(shuffledOrder(6, 2));
});
