import { LEAST_SHARE, type Resident, SlotPool } from '../../../src/engine/pool/slot-pool.js';

const NOWHERE = { first: 0, last: -1 };

function resident(version: string, tokens: number[], kvLength = tokens.length, alignedLength = 0): Resident {
  return { version, tokens: Int32Array.from(tokens), kvLength, alignedLength };
}

const count = (from: number, length: number): number[] => Array.from({ length }, (_, i) => from + i);

test('the longest prefix under the same version is found, live or ended, and nothing under another version', () => {
  const pool = new SlotPool(4, 1000);
  pool.occupy(0, resident('base', count(0, 40)));
  pool.occupy(1, resident('v1', count(0, 60)));
  pool.occupy(2, resident('base', count(0, 50)));
  pool.release(2, resident('base', count(0, 50)));
  const tokens = Int32Array.from([...count(0, 45), 999, 999]);
  expect(pool.findShare('base', tokens, 46, 0)).toEqual({ slot: 2, length: 45 });
  expect(pool.findShare('v1', tokens, 46, 0)).toEqual({ slot: 1, length: 45 });
  expect(pool.findShare('v2', tokens, 46, 0)).toBeNull();
  expect(pool.findShare('base', tokens, 20, 0)).toEqual({ slot: 0, length: 20 });
  expect(pool.findShare('base', Int32Array.from([5, 6, 7]), 2, 0)).toBeNull();
});

test('only computed positions are shared, and too short a prefix is not', () => {
  const pool = new SlotPool(2, 1000);
  pool.occupy(0, resident('base', count(0, 40), 17));
  const tokens = Int32Array.from(count(0, 100));
  expect(pool.findShare('base', tokens, 99, 0)).toEqual({ slot: 0, length: 17 });
  pool.occupy(0, resident('base', count(0, 40), LEAST_SHARE - 1));
  expect(pool.findShare('base', tokens, 99, 0)).toBeNull();
});

test('in whole chunks only what was read in whole chunks is shared', () => {
  const pool = new SlotPool(1, 1000);
  pool.occupy(0, resident('base', count(0, 90), 90, 64));
  const tokens = Int32Array.from(count(0, 100));
  expect(pool.findShare('base', tokens, 99, 32)).toEqual({ slot: 0, length: 64 });
  expect(pool.findShare('base', tokens, 63, 32)).toEqual({ slot: 0, length: 32 });
});

test('ended sequences keep at most the configured number of tokens, the freshest ones', () => {
  const pool = new SlotPool(3, 100);
  for (const slot of [0, 1, 2]) pool.occupy(slot, resident('base', count(slot * 1000, 45)));
  for (const slot of [1, 0, 2]) pool.release(slot, resident('base', count(slot * 1000, 45)));
  expect([0, 1, 2].map((slot) => pool.keptLength(slot))).toEqual([45, 0, 45]);
});

test('one longer than all that may be kept leaves nothing and takes nothing from the others', () => {
  const pool = new SlotPool(3, 100);
  const lengths = [45, 50, 101];
  for (const slot of lengths.keys()) pool.occupy(slot, resident('base', []));
  for (const [slot, length] of lengths.entries()) pool.release(slot, resident('base', count(0, length)));
  expect([0, 1, 2].map((slot) => pool.keptLength(slot))).toEqual([45, 50, 0]);
});

test('a slot that shares most of what it keeps is taken over, else another one', () => {
  const pool = new SlotPool(3, 10_000);
  for (const slot of [0, 1, 2]) pool.occupy(slot, resident('base', count(slot * 1000, 400)));
  pool.release(1, resident('base', count(1000, 400)));
  pool.release(2, resident('base', count(2000, 400)));
  expect(pool.choose(NOWHERE, { slot: 1, length: 300 })).toBe(1);
  expect(pool.choose(NOWHERE, { slot: 1, length: 50 })).toBe(2);
  pool.occupy(2, resident('base', []));
  expect(pool.choose(NOWHERE, { slot: 1, length: 50 })).toBe(1);
});

test('a new sequence goes beside those that decode, an old prefix making room before a fresh one', () => {
  const pool = new SlotPool(8, 10_000);
  for (const slot of [3, 4]) pool.occupy(slot, resident('base', []));
  expect([2, 5]).toContain(pool.choose({ first: 3, last: 4 }, null));
  pool.occupy(2, resident('base', count(0, 50)));
  pool.release(2, resident('base', count(0, 50)));
  pool.occupy(5, resident('base', count(100, 50)));
  pool.release(5, resident('base', count(100, 50)));
  // Slots 1 and 6 leave one hole each, less than the freshest prefix (5) is worth and as much as the older one (2).
  expect([1, 2, 6]).toContain(pool.choose({ first: 3, last: 4 }, null));
});

test('with nothing free it says so', () => {
  const pool = new SlotPool(1, 0);
  pool.occupy(0, resident('base', []));
  expect(() => pool.choose(NOWHERE, null)).toThrow('no free slot');
  expect(pool.fixed(null)).toBe(-1);
  expect(pool.fixed(0)).toBe(-1);
});

test('what a dropped version left is forgotten', () => {
  const pool = new SlotPool(2, 1000);
  for (const [slot, version] of ['v1', 'base'].entries()) {
    pool.occupy(slot, resident(version, count(0, 30)));
    pool.release(slot, resident(version, count(0, 30)));
  }
  pool.forget('v1');
  expect(pool.findShare('v1', Int32Array.from(count(0, 30)), 29, 0)).toBeNull();
  expect(pool.findShare('base', Int32Array.from(count(0, 30)), 29, 0)).not.toBeNull();
});
