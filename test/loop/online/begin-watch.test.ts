// What a publication does to the watch of the one before it.

import { loadConfig } from '../../../src/config/index.js';
import { beginWatch, hasStood } from '../../../src/loop/online/begin-watch.js';
import type { LabelledAnswer } from '../../../src/loop/online/known-answer.js';
import {
  newSequentialState,
  sequentialVerdict,
} from '../../../src/loop/online/statistics/sequential-test.js';
import { observeOutcomes, type Watch, watchSettings } from '../../../src/loop/online/watch.js';
import { newWatch } from '../support/watch.js';

const { loop } = loadConfig({ env: {}, flags: { 'loop.watchMinPairs': 20, 'loop.watchMaxPairs': 60 } });
const settings = watchSettings(loop);

let sequence = 0;
/** Answers of one version, labelled in turn by six keys. */
const said = (version: string, count: number, value: number): LabelledAnswer[] =>
  Array.from({ length: count }, (_, i) => {
    sequence++;
    const sources = [{ keyId: `key-${i % 6}`, role: 'feedback', feedbackId: 'f', sequence, createdAt: 0 }];
    return {
      head: {
        id: `${version}-${sequence}`,
        adapterVersion: version,
        source: 'serve',
        method: 'search-r1',
        sequence,
      },
      answer: null,
      sources,
      label: { reward: { value, sources }, golds: null },
    } as unknown as LabelledAnswer;
  });

/** Publishes version after version; of each so many answers are labelled. */
function published(
  base: readonly LabelledAnswer[],
  versions: readonly (readonly [version: string, count: number, value: number])[],
): Watch {
  let state: { live: string; watch: Watch | null } = { live: 'base', watch: null };
  const answers = [...base];
  for (const [version, count, value] of versions) {
    const candidate = { version, trainerStep: 1, confirmedBy: null };
    const watch = beginWatch(candidate, state, { answers, sequence }, loop);
    const news = said(version, count, value);
    answers.push(...news);
    state = { live: version, watch: { ...observeOutcomes(watch, news, settings), feedback: sequence } };
  }
  return state.watch as Watch;
}

test('versions that follow each other faster than labels are watched together, against the one before them all', () => {
  const watch = published(said('base', 30, 1), [
    ['v1', 8, 0],
    ['v2', 8, 0],
    ['v3', 8, 0],
  ]);
  expect(watch).toMatchObject({ version: 'v3', against: 'base', earlier: ['v1', 'v2'] });
  expect(sequentialVerdict(watch.test, settings)).toBe('worse');
});

test('what was said of an earlier one after the next was out counts for it, not as that of a version to compare with', () => {
  const watch = published(said('base', 30, 1), [
    ['v1', 2, 0],
    ['v2', 2, 0],
  ]);
  const late = observeOutcomes(watch, said('v1', 20, 0), settings);
  expect(late).toMatchObject({ test: { pairs: 24 }, older: { length: 6 } });
  expect(sequentialVerdict(late.test, settings)).toBe('worse');
});

test('a version that has stood its test is what the next one is compared with', () => {
  const watch = published(said('base', 30, 0), [
    ['v1', 25, 1],
    ['v2', 3, 1],
  ]);
  expect(watch).toMatchObject({ against: 'v1', earlier: [], test: { pairs: 3 } });
});

test('so is one of which more is known than of the version before it', () => {
  const watch = published(said('base', 2, 1), [
    ['v1', 15, 1],
    ['v2', 3, 1],
  ]);
  expect(watch).toMatchObject({ against: 'v1', test: { pairs: 3 } });
});

test('one that users begin to find worse takes the next along, while that can still be in as many pairs as a verdict takes', () => {
  // Worse by a little more than the margin: the evidence is above nothing, and no proof.
  const watched = (count: number, next: number) =>
    published(said('base', 90, 1), [
      ['v1', count, 0.95],
      ['v2', next, 1],
    ]);
  expect(watched(40, 20)).toMatchObject({ against: 'base', earlier: ['v1'], test: { pairs: 60 } });
  expect(sequentialVerdict(watched(40, 20).test, settings)).toBe('kept');
  expect(watched(41, 20)).toMatchObject({ against: 'v1', earlier: [], test: { pairs: 20 } });
});

test('a trial has outcomes of its own time only', () => {
  const state = { live: 'base', watch: null };
  const candidate = { version: 'v1', trainerStep: 1, confirmedBy: null };
  const heard = { answers: said('base', 30, 1), sequence };
  expect(beginWatch(candidate, state, heard, { ...loop, canaryShare: 0.1 })).toMatchObject({
    older: [],
    share: 0.1,
  });
});

test('a version has stood once as many pairs as a verdict takes were its own, and not before', () => {
  const watchOf = (pairs: number, changes: Partial<Watch> = {}): Watch =>
    newWatch({ version: 'v', test: { ...newSequentialState(), pairs }, ...changes });
  const stands = (watch: Watch | null): boolean => hasStood({ live: 'v', watch }, loop);
  expect([stands(null), stands(watchOf(19)), stands(watchOf(20))]).toEqual([false, false, true]);
  // Pairs of several versions together, or of one on trial, say nothing of the live one alone.
  expect(stands(watchOf(20, { earlier: ['u'] }))).toBe(false);
  expect(stands(watchOf(20, { version: 'w' }))).toBe(false);
});
