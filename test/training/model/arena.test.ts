import fc from 'fast-check';
import { Arena } from '../../../src/training/model/arena.js';
import { floats } from '../../../src/training/model/workspace.js';

const batch = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 12 });

test('tensors of one batch never overlap, whatever the batches before held', () => {
  fc.assert(
    fc.property(fc.array(batch, { minLength: 1, maxLength: 4 }), (batches) => {
      const arena = new Arena();
      for (const sizes of batches) {
        arena.begin();
        for (const [at, size] of sizes.entries()) floats(arena.tensor(`${at}`, [size, 2])).fill(at);
        for (const [at, size] of sizes.entries())
          expect([...floats(arena.tensor(`${at}`, [size, 2]))]).toEqual(new Array(2 * size).fill(at));
      }
    }),
    { numRuns: 30 },
  );
});

test('a batch of the same shapes gets the very same views, and no more memory than the largest one', () => {
  const arena = new Arena();
  const views = (sizes: readonly number[]) => {
    arena.begin();
    return sizes.map((size, at) => arena.tensor(`${at}`, [size]));
  };
  const first = views([10, 20, 30]);
  const second = views([10, 20, 30]);
  for (const [at, view] of second.entries()) expect(view).toBe(first[at]);
  const third = views([10, 24, 30]);
  expect(third[0]).toBe(first[0]);
  expect(third[1]).not.toBe(first[1]);
  const buffers = new Set([...first, ...third].map((view) => floats(view).buffer));
  expect(buffers.size).toBe(1);
});

test('a tensor that is larger than a segment has one of its own', () => {
  const arena = new Arena();
  const large = arena.tensor('large', [2 ** 24 + 1]);
  expect(floats(large)).toHaveLength(2 ** 24 + 1);
  expect(floats(arena.tensor('small', [3]))).toHaveLength(3);
});
