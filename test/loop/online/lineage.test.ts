import { deletedAlong } from '../../../src/loop/online/lineage.js';

const made = (digest: string, parentDigest: string | null, deletedRecords: number) => ({
  digest,
  parentDigest,
  deletedRecords,
});

const ADAPTERS = [made('a', null, 1), made('b', 'a', 2), made('c', 'b', 4), made('d', 'b', 8)];

test('deletions count along the line of a candidate, down to what is live', () => {
  expect(deletedAlong(ADAPTERS, 'c', 'base')).toBe(7);
  expect(deletedAlong(ADAPTERS, 'c', 'a')).toBe(6);
  expect(deletedAlong(ADAPTERS, 'd', 'b')).toBe(8);
  expect(deletedAlong(ADAPTERS, 'b', 'b')).toBe(0);
});

test('a version that no step made has none, and a ring ends', () => {
  expect(deletedAlong(ADAPTERS, 'unknown', 'base')).toBe(0);
  expect(deletedAlong([made('a', 'b', 1), made('b', 'a', 1)], 'a', 'base')).toBe(2);
});
