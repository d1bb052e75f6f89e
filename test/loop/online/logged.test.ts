// What only reading an answer shows: whether the raw policy alone made it, and with working searches.

import { unusableRecord } from '../../../src/loop/online/logged.js';
import type { StoredTrajectory } from '../../../src/trajectory/index.js';
import { RAW_POLICY } from '../../support/rollout-kit.js';
import { makeRecord } from '../../trajectory/store/support.js';

const RAW = { ...RAW_POLICY, maxTokens: null, ignoreEos: false };

function answer(changes: { sampling?: object; searchError?: string; forced?: boolean } = {}) {
  const record = makeRecord('a');
  return {
    record: {
      ...record,
      sampling: { ...RAW, ...changes.sampling },
      forced: changes.forced ?? false,
      searches: record.searches.map((search) => ({ ...search, error: changes.searchError ?? null })),
    },
  } as unknown as StoredTrajectory;
}

test('an answer is learned from as it was given where nothing but the policy and its searches made it', () => {
  expect(unusableRecord(answer())).toBeNull();
  expect(unusableRecord(answer({ searchError: 'no answer within 1000 ms' }))).toBe('a search failed');
  expect(unusableRecord(answer({ forced: true }))).toBe('answer was forced');
  for (const sampling of [{ ignoreEos: true }, { topP: 0.9 }, { logitBias: { 5: -100 } }, { temperature: 0 }])
    expect(unusableRecord(answer({ sampling }))).toContain('cut sampling');
});
