// Which answers are learned from as they were given: what the head of one tells, and what only reading it shows, namely
// whether the raw policy alone made it, and with working searches.

import type { KnownAnswer } from '../../../src/loop/online/known-answer.js';
import {
  clusterOf,
  type LoggedRules,
  type Unusable,
  unusableHead,
  unusableRecord,
} from '../../../src/loop/online/logged.js';
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

const SOUND = {
  id: 'a',
  source: 'explore',
  temperature: 1,
  method: 'search-r1',
  modelDigest: 'ours',
  tokens: 100,
  auditState: 'clean',
  stop: 'answer',
  failedSearches: 0,
};
const reasonOf = (head: object, rules: Partial<LoggedRules> = {}): Unusable | null =>
  unusableHead({ head: { ...SOUND, ...head } } as KnownAnswer, {
    modelDigest: 'ours',
    maxTokens: 100,
    mayTeach: () => true,
    against: () => null,
    ...rules,
  });

test('nothing stands against a sound explored answer, of whose searches nothing need be known', () => {
  expect(reasonOf({})).toBeNull();
  expect(reasonOf({ failedSearches: null })).toBeNull();
  for (const stop of ['length', 'end', 'context']) expect(reasonOf({ stop })).toBeNull();
});

test.each<[object, Unusable]>([
  [{ source: 'serve' }, 'not explored (temperature 0 or cut sampling)'],
  [{ source: 'train' }, 'not explored (temperature 0 or cut sampling)'],
  [{ temperature: 0 }, 'not explored (temperature 0 or cut sampling)'],
  [{ temperature: null }, 'not explored (temperature 0 or cut sampling)'],
  [{ method: 'rag' }, 'other method'],
  [{ modelDigest: 'theirs' }, 'other model'],
  [{ tokens: 101 }, 'too long'],
  [{ auditState: 'quarantined' }, 'failed the audit'],
  [{ auditState: 'unchecked' }, 'not audited'],
  [{ stop: 'cancelled' }, 'ended by its asker'],
  [{ stop: 'stop' }, 'ended by its asker'],
  [{ failedSearches: 1 }, 'a search failed'],
])('one thing against an explored answer is enough: %j, %s', (head, reason) => {
  expect(reasonOf(head)).toBe(reason);
});

test('what may not teach, and what else is known against an answer, is asked of that answer', () => {
  const mayTeach = jest.fn(() => false);
  expect(reasonOf({}, { mayTeach })).toBe('held out');
  expect(mayTeach).toHaveBeenCalledWith({ head: SOUND });
  const against = jest.fn(() => 'trained on before' as const);
  expect(reasonOf({}, { against })).toBe('trained on before');
  expect(against).toHaveBeenCalledWith('a');
});

test('of two that are compared also such count as their asker had sampled', () => {
  const withAsked = { withAsked: true };
  expect(reasonOf({ source: 'serve' }, withAsked)).toBeNull();
  expect(reasonOf({}, withAsked)).toBeNull();
  for (const head of [
    { source: 'serve', temperature: 0 },
    { source: 'serve', temperature: 0.7 },
    { source: 'train' },
  ])
    expect(reasonOf(head, withAsked)).toContain('not explored');
});

test.each([
  ['What is red?', 'what'],
  ['In which year was HOW green was my valley filmed, and by whom?', 'which'],
  ['How many moons has Mars?', 'how many'],
  ['How much is it?', 'how much'],
  ['how old is it', 'how'],
  ['Whose was it?', 'whose'],
  ['Somewhat likely?', 'other'],
  ['Tell me about red.', 'other'],
])(
  'questions that ask for the same kind of thing share what is to be expected of them: %s',
  (question, cluster) => {
    expect(clusterOf(question)).toBe(cluster);
  },
);
