import type { LoopTraffic } from '../../../src/loop/index.js';
import { tried } from '../../../src/server/answers/traffic.js';

const traffic: LoopTraffic = {
  exploreShare: 0,
  canary: { adapter: 'loop-new', version: 'new', share: 0.5 },
};
const live = { method: 'search-r1', adapter: undefined, adapterVersion: 'old' } as const;

test('a version on trial is wished for and not insisted upon: what is live then answers where it has gone', () => {
  // As it is: an adapter that is named would be asked for again, and the request would fail.
  expect(tried(live, traffic, () => 0.4)).toEqual({ ...live, adapterVersion: 'new' });
  expect(tried(live, traffic, () => 0.5)).toBe(live);
});

test('who names a version, or the base model, gets it', () => {
  for (const adapter of ['mine', null]) {
    const named = { ...live, adapter, adapterVersion: 'theirs' };
    expect(tried(named, traffic, () => 0)).toBe(named);
  }
});
