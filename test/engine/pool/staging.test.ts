import { createFloatMemory, createInt8Memory } from '../../../src/engine/pool/kv-memory.js';
import { Staging } from '../../../src/engine/pool/staging.js';

const shape = { layers: 1, kvHeads: 2, headDim: 2, slots: 3, capacity: 4 };
/** Two buffers of two heads of two channels. */
const STEPS = [Float32Array.of(0.5, 1, 2, 4), Float32Array.of(1, 1, 1, 1)];

function setUp() {
  const pool = createInt8Memory(shape);
  const slot = createFloatMemory({ ...shape, slots: 1 });
  return { pool, slot, staging: new Staging(pool, slot, STEPS) };
}

/** Positions of one head in the slot of the pool. */
const pooled = (
  memory: { views: ReturnType<typeof createInt8Memory>['views'] },
  slot: number,
  head: number,
) => Array.from(memory.views(slot, 1)[0]?.data as Int8Array).slice(head * 8, head * 8 + 8);

test('a chunk is rounded into its slot and stays rounded here', () => {
  const { pool, slot, staging } = setUp();
  const owner = { stagedLength: 0 };
  slot.buffers[0]?.set([0.6, 0.6, -0.8, 1.4, 1000, -1000, 9, 9, 3, 3, 5, 7]);
  staging.store(owner, 1, 0, 3);
  expect(pooled(pool, 1, 0)).toEqual([1, 1, -2, 1, 127, -128, 0, 0]);
  expect(pooled(pool, 1, 1)).toEqual([2, 1, 3, 2, 0, 0, 0, 0]);
  expect([...(slot.buffers[0] as Float32Array)].slice(0, 6)).toEqual([0.5, 1, -1, 1, 63.5, -128]);
  for (const other of [0, 2]) expect(new Set(pooled(pool, other, 0))).toEqual(new Set([0]));
});

test('what is staged already is not brought again; another sequence, and what came by decoding, is', () => {
  const { pool, slot, staging } = setUp();
  const [one, other] = [{ stagedLength: 0 }, { stagedLength: 0 }];
  const first = () => [...(slot.buffers[0] as Float32Array)].slice(0, 8);
  pool.buffers[0]?.fill(1, 0, 8);
  staging.load(one, 0, 2);
  expect(first()).toEqual([0.5, 1, 0.5, 1, 0, 0, 0, 0]);
  pool.buffers[0]?.fill(2, 0, 8);
  staging.load(one, 0, 3);
  expect(first()).toEqual([0.5, 1, 0.5, 1, 1, 2, 0, 0]);
  one.stagedLength = 1;
  staging.load(one, 0, 3);
  expect(first()).toEqual([0.5, 1, 1, 2, 1, 2, 0, 0]);
  staging.load(other, 1, 1);
  expect(first().slice(0, 2)).toEqual([0, 0]);
  staging.load(one, 0, 1);
  expect(first().slice(0, 2)).toEqual([1, 2]);
});
