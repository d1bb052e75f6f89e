import fc from 'fast-check';
import { Compaction, windowOf } from '../../../src/engine/pool/compaction.js';
import { createFloatMemory } from '../../../src/engine/pool/kv-memory.js';

const windowAround = (decodes: number[]) => {
  const window = { first: 0, last: -1 };
  return { count: windowOf(decodes, window), window };
};

test('the window is the smallest one around the decoding slots', () => {
  expect(windowAround([0, 0, 1, 0, 1, 0])).toEqual({ count: 2, window: { first: 2, last: 4 } });
  expect(windowAround([0, 0])).toEqual({ count: 0, window: { first: 0, last: -1 } });
});

test('a hole is closed once its rows have cost as much as the copy, a dear one later than a cheap one', () => {
  const stepsUntilMove = (tokens: number): number => {
    const compaction = new Compaction();
    const decodes = [1, 0, 1];
    const { window, count } = windowAround(decodes);
    for (let step = 1; ; step++) {
      const move = compaction.next(decodes, window, count, (slot) => (slot === 1 ? 0 : tokens));
      if (move !== null) return step;
    }
  };
  expect(stepsUntilMove(0)).toBe(1);
  expect(stepsUntilMove(128)).toBe(1);
  expect(stepsUntilMove(1000)).toBe(8);
});

test('no hole, no move, and earlier payments are forgotten', () => {
  const compaction = new Compaction();
  const kept = () => 300;
  const holed = windowAround([1, 0, 1]);
  expect(compaction.next([1, 0, 1], holed.window, holed.count, kept)).toBeNull();
  const whole = windowAround([1, 1, 0]);
  expect(compaction.next([1, 1, 0], whole.window, whole.count, kept)).toBeNull();
  for (let step = 1; step <= 4; step++)
    expect(compaction.next([1, 0, 1], holed.window, holed.count, kept)).toBeNull();
  expect(compaction.next([1, 0, 1], holed.window, holed.count, kept)).not.toBeNull();
});

test('every move goes from an edge into a hole and makes the window smaller', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 16 }), (decodes) => {
      const { window, count } = windowAround(decodes);
      const move = new Compaction().next(decodes, window, count, () => 0);
      if (move === null) return expect(count).toBe(window.last - window.first + 1);
      expect([window.first, window.last]).toContain(move.from);
      expect(decodes[move.to]).toBe(0);
      const after = decodes.slice();
      after[move.to] = 1;
      after[move.from] = 0;
      const { window: smaller } = windowAround(after);
      expect(smaller.last - smaller.first).toBeLessThan(window.last - window.first);
    }),
  );
});

describe('memory', () => {
  const shape = { layers: 2, kvHeads: 2, headDim: 3, slots: 3, capacity: 5 };
  /** Every element its own number. */
  const filled = () => {
    const memory = createFloatMemory(shape);
    memory.views(0, 3).forEach((view, buffer) => {
      for (let i = 0; i < view.data.length; i++) view.data[i] = buffer * 1000 + i;
    });
    return memory;
  };
  /** [buffer][head][position] of one slot, each the numbers of one position. */
  const read = (memory: ReturnType<typeof filled>, slot: number) =>
    memory
      .views(slot, 1)
      .map(({ data }) =>
        [0, 1].map((head) =>
          Array.from({ length: 5 }, (_, position) =>
            Array.from(
              data.subarray((head * 5 + position) * 3, (head * 5 + position) * 3 + 3) as Float32Array,
            ),
          ),
        ),
      );

  test('views are parts of the same memory', () => {
    const memory = filled();
    const [all] = memory.views(0, 3);
    const [second] = memory.views(1, 2);
    expect(second).toMatchObject({ type: 'float32', shape: [2, 2, 5, 3] });
    (second as { data: Float32Array }).data[0] = -1;
    expect((all as { data: Float32Array }).data[30]).toBe(-1);
    expect(memory.views(0, 3)).toHaveLength(4);
  });

  test('a copy takes the first positions of every head and nothing else', () => {
    const memory = filled();
    const [from, to] = [read(memory, 2), read(memory, 0)];
    memory.copy(2, 0, 3);
    const after = read(memory, 0);
    after.forEach((heads, buffer) => {
      heads.forEach((positions, head) => {
        expect(positions.slice(0, 3)).toEqual(from[buffer]?.[head]?.slice(0, 3));
        expect(positions.slice(3)).toEqual(to[buffer]?.[head]?.slice(3));
      });
    });
    expect(read(memory, 2)).toEqual(from);
  });

  test('an exchange swaps the first positions', () => {
    const memory = filled();
    const [one, other, third] = [read(memory, 0), read(memory, 1), read(memory, 2)];
    memory.exchange(0, 1, 4);
    const mixed = (mine: typeof one, theirs: typeof one) =>
      mine.map((heads, buffer) =>
        heads.map((positions, head) => [
          ...(theirs[buffer]?.[head]?.slice(0, 4) ?? []),
          ...positions.slice(4),
        ]),
      );
    expect(read(memory, 0)).toEqual(mixed(one, other));
    expect(read(memory, 1)).toEqual(mixed(other, one));
    expect(read(memory, 2)).toEqual(third);
  });
});
