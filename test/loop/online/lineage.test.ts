import { deletedAlong } from '../../../src/loop/online/lineage.js';
import type { AdapterRecord } from '../../../src/trajectory/store/types.js';

test('deletions count along the line of a candidate, down to what is live; all other versions are not asked for', async () => {
  const lineOf = jest.fn(
    async () => [{ deletedRecords: 4 }, { deletedRecords: 2 }] as unknown as AdapterRecord[],
  );
  expect(await deletedAlong({ lineOf }, 'c', 'a')).toBe(6);
  expect(lineOf.mock.calls).toEqual([['c', ['a']]]);
  expect(await deletedAlong({ lineOf: async () => [] }, 'unknown', 'base')).toBe(0);
});
