// What of feedback counts for or against a version: over a real store, and by any order of words and restarts.

import fc from 'fast-check';
import type { LabelledAnswer } from '../../../src/loop/online/known-answer.js';
import { LabelIndex } from '../../../src/loop/online/labels.js';
import {
  type LoopState,
  newLoopState,
  readLoopState,
  type WatchedOutcome,
} from '../../../src/loop/online/state.js';
import { sequentialVerdict } from '../../../src/loop/online/statistics/sequential-test.js';
import {
  observeOutcomes,
  outcomesUnder,
  type WatchSettings,
  withoutDeleted,
} from '../../../src/loop/online/watch.js';
import type { FeedbackInput, TrajectoryStore } from '../../../src/trajectory/index.js';
import { feedback, makeRecord, notes, useStore } from '../../trajectory/store/support.js';
import { newWatch } from '../support/watch.js';

type Watch = NonNullable<LoopState['watch']>;

const SETTINGS: WatchSettings = { alpha: 0.05, margin: 0.03, minPairs: 20, maxPairs: 40, keyShare: 0.25 };
const idsOf = (outcomes: readonly WatchedOutcome[]): string[] => outcomes.map(({ id }) => id);
const begun = (feedback = 0): Watch => newWatch({ feedback });

let store: TrajectoryStore;
useStore('watch', (opened) => {
  store = opened;
});

const answered = (id: string, version: string) => store.put(makeRecord(id, { version }), notes());
const say = (id: string, said: Partial<FeedbackInput>) => store.addFeedback(feedback(id, said));

/** A loop's part in it: keeps the watch, and a restart leaves nothing but what was stored. */
function watcher(first: Watch) {
  let watch = first;
  let labels = new LabelIndex(store);
  return {
    async look(): Promise<Watch> {
      watch = { ...observeOutcomes(watch, await labels.refresh(), SETTINGS), feedback: labels.sequence };
      return watch;
    },
    async restart(): Promise<void> {
      await store.putDocuments({ loop: { ...newLoopState(0, 'old'), watch } });
      watch = (await readLoopState(store))?.watch as Watch;
      labels = new LabelIndex(store);
    },
  };
}

test('an outage right after a publication says nothing of the version; what was stored before that was known counts', async () => {
  const met = Array.from({ length: 30 }, (_, i) => `met-${i}`);
  const outage = { version: 'new', searchError: 'the engine is away' };
  await Promise.all(met.map((id) => store.put(makeRecord(id, outage), notes())));
  await answered('sound', 'new');
  await Promise.all([...met, 'sound'].map((id, i) => say(id, { reward: 0, keyId: `key-${i % 6}` })));
  expect((await watcher(begun()).look()).newer.map(({ id }) => id)).toEqual(['sound']);
  const labels = new LabelIndex(store);
  await labels.refresh();
  const ids = (answers: readonly LabelledAnswer[]) =>
    outcomesUnder(answers, 'new', SETTINGS).outcomes.map(({ id }) => id);
  expect(ids(labels.answers())).toEqual(['sound']);
  const older = labels
    .answers()
    .map((answer) => ({ ...answer, head: { ...answer.head, failedSearches: null } }));
  expect(ids(older).length).toBeGreaterThan(1);
});

test('what other methods answer with the base model is no answer of a version', async () => {
  await answered('searched', 'base');
  for (const method of ['chat', 'rag'])
    await store.put({ ...makeRecord(method, { version: 'base' }), method }, notes());
  for (const id of ['searched', 'chat', 'rag']) await say(id, { reward: 1, keyId: id });
  const watch = await watcher(newWatch({ against: 'base' })).look();
  expect(idsOf(watch.older)).toEqual(['searched']);
  const labels = new LabelIndex(store);
  await labels.refresh();
  expect(idsOf(outcomesUnder(labels.answers(), 'base', SETTINGS).outcomes)).toEqual(['searched']);
});

test('one answer counts once, whatever is said of it, and sixty words of one key roll nothing back', async () => {
  const old = Array.from({ length: 30 }, (_, i) => `old-${i}`);
  await Promise.all(old.map((id) => answered(id, 'old')));
  await Promise.all(old.map((id, i) => say(id, { reward: 1, keyId: `key-${i % 6}` })));
  await answered('bad', 'new');
  const loop = watcher(begun());
  expect((await loop.look()).older).toHaveLength(30);
  for (let i = 0; i < 60; i++) {
    await say('bad', i % 2 === 0 ? { reward: 0 } : { comment: 'still bad' });
    if (i % 4 === 3) await loop.look();
  }
  const watch = await loop.look();
  expect(watch.test).toMatchObject({ pairs: 1, sum: -1 });
  expect(sequentialVerdict(watch.test, SETTINGS)).toBe('open');
});

test('after a restart what was counted is not counted again; what was said meanwhile is', async () => {
  for (const version of ['old', 'new'])
    for (let i = 0; i < 6; i++) await answered(`${version}-${i}`, version);
  const loop = watcher(begun());
  for (let i = 0; i < 3; i++) await say(`new-${i}`, { reward: 0 });
  for (let i = 0; i < 2; i++) await say(`old-${i}`, { reward: 1 });
  const before = await loop.look();
  expect(before).toMatchObject({ test: { pairs: 2 }, newer: [{ id: 'new-2', outcome: 0 }], older: [] });
  await loop.restart();
  expect(await loop.look()).toEqual(before);
  await say('old-2', { reward: 1 });
  await say('new-3', { reward: 1 });
  await loop.restart();
  expect(await loop.look()).toMatchObject({ test: { pairs: 3 }, newer: [{ id: 'new-3' }], older: [] });
});

test('labels from before the watch do not enter it by a comment of today', async () => {
  await answered('a', 'old');
  const { entry } = await say('a', { reward: 1 });
  const loop = watcher(begun(entry.sequence));
  await say('a', { comment: 'as I said' });
  expect((await loop.look()).older).toEqual([]);
  await say('a', { reward: 0.5 });
  expect((await loop.look()).older).toMatchObject([{ id: 'a', outcome: 0.5, by: [{ keyId: 'key-1' }] }]);
});

test('in any order: no answer is in two pairs, and what is remembered is bounded', () => {
  const word = fc.record({ answer: fc.nat(60), isNew: fc.boolean(), reward: fc.constantFrom(0, 0.5, 1) });
  const settings = { ...SETTINGS, maxPairs: 7, keyShare: 1 };
  fc.assert(
    fc.property(fc.array(fc.array(word, { maxLength: 30 }), { maxLength: 12 }), (rounds) => {
      let watch = begun();
      let sequence = 0;
      const said = new Set<string>();
      for (const words of rounds) {
        const news = words.map(({ answer, isNew, reward }): LabelledAnswer => {
          const version = isNew ? 'new' : 'old';
          const id = `${version}-${answer}`;
          said.add(id);
          sequence += 1;
          const sources = [
            { keyId: 'k', role: 'feedback', feedbackId: 'f', sequence, createdAt: 0 },
          ] as const;
          return {
            head: { id, adapterVersion: version, source: 'serve', method: 'search-r1', answer: null },
            label: { reward: { value: reward, sources }, golds: null },
            sources,
          } as unknown as LabelledAnswer;
        });
        watch = { ...observeOutcomes(watch, news, settings), feedback: sequence };
        const { pairs, newer, older, test } = watch;
        expect(pairs).toHaveLength(test.pairs);
        const all = idsOf([...pairs.flatMap((pair) => [pair.newer, pair.older]), ...newer, ...older]);
        expect(new Set(all).size).toBe(all.length);
        expect(all.every((id) => said.has(id))).toBe(true);
        expect(all.length).toBeLessThanOrEqual(4 * settings.maxPairs);
      }
    }),
  );
});

/** An answer under a version, labelled by one key. */
const labelled = (
  id: string,
  version: string,
  keyId: string,
  value: number,
  sequence = 1,
): LabelledAnswer => {
  const sources = [
    { keyId, role: keyId === 'boss' ? 'admin' : 'feedback', feedbackId: `fb-${id}`, sequence },
  ];
  return {
    head: { id, adapterVersion: version, source: 'serve', method: 'search-r1', sequence },
    answer: null,
    label: { reward: { value, sources }, golds: null },
    sources,
  } as unknown as LabelledAnswer;
};

test('one key that labels fifty answers rolls nothing back; four that agree do, and an admin alone', () => {
  const others = Array.from({ length: 60 }, (_, i) => labelled(`old-${i}`, 'old', `key-${i % 6}`, 1));
  const bad = (keyOf: (i: number) => string) =>
    Array.from({ length: 50 }, (_, i) => labelled(`new-${i}`, 'new', keyOf(i), 0));
  const after = (news: LabelledAnswer[]) => observeOutcomes(begun(), [...others, ...news], SETTINGS);
  const one = after(bad(() => 'a'));
  expect(one).toMatchObject({ test: { pairs: 5 }, beyondShare: 45, weights: { newer: { a: 5 } } });
  expect(sequentialVerdict(one.test, SETTINGS)).toBe('open');
  expect(sequentialVerdict(after(bad((i) => `key-${i % 4}`)).test, SETTINGS)).toBe('worse');
  expect(sequentialVerdict(after(bad(() => 'boss')).test, SETTINGS)).toBe('worse');
});

test('a key cannot praise the version before beyond its share either', () => {
  const praise = Array.from({ length: 50 }, (_, i) => labelled(`old-${i}`, 'old', 'a', 1, i));
  expect(outcomesUnder(praise, 'old', SETTINGS)).toMatchObject({
    outcomes: { length: 5 },
    weights: { a: 5 },
  });
});

test('in any order of keys: no pairs that a verdict may rest on are more of one key than its share', () => {
  const voice = fc.record({ keyId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), isNew: fc.boolean() });
  const settings = { ...SETTINGS, minPairs: 8, maxPairs: 100 };
  fc.assert(
    fc.property(fc.array(voice, { maxLength: 150 }), fc.integer({ min: 1, max: 20 }), (voices, most) => {
      let watch = begun();
      const keyOf = new Map(voices.map(({ keyId }, i) => [`${i}`, keyId]));
      for (let from = 0; from < voices.length; from += most) {
        const news = voices
          .slice(from, from + most)
          .map(({ keyId, isNew }, i) =>
            labelled(`${from + i}`, isNew ? 'new' : 'old', keyId, 0, from + i + 1),
          );
        watch = observeOutcomes(watch, news, settings);
        const newer = idsOf(watch.pairs.map((pair) => pair.newer));
        for (const key of new Set(keyOf.values()))
          expect(newer.filter((id) => keyOf.get(id) === key).length).toBeLessThanOrEqual(
            Math.ceil(0.25 * Math.max(8, newer.length)),
          );
      }
    }),
  );
});

test('in any order: what was deleted leaves the watch that had never heard it', () => {
  const voice = fc.record({
    keyId: fc.constantFrom('gone', 'gone too', 'a', 'b', 'c'),
    isNew: fc.boolean(),
    value: fc.constantFrom(0, 0.5, 1),
  });
  const settings = { ...SETTINGS, maxPairs: 30, keyShare: 1 };
  fc.assert(
    fc.property(fc.array(voice, { maxLength: 60 }), fc.integer({ min: 1, max: 20 }), (voices, most) => {
      const said = voices.map(({ keyId, isNew, value }, i) =>
        labelled(`${i}`, isNew ? 'new' : 'old', keyId, value, i + 1),
      );
      const isGone = ({ sources }: LabelledAnswer): boolean =>
        sources.some(({ keyId }) => keyId.startsWith('gone'));
      const heard = (isHeard: (answer: LabelledAnswer) => boolean): Watch => {
        let watch = begun();
        for (let from = 0; from < said.length; from += most)
          watch = observeOutcomes(watch, said.slice(from, from + most).filter(isHeard), settings);
        return watch;
      };
      // One key by its words, the other by the answers that it spoke of.
      const ids = said
        .filter(isGone)
        .map(({ head, sources: [word] }) => (word?.keyId === 'gone' ? word.feedbackId : head.id));
      const left = withoutDeleted(
        heard(() => true),
        new Set(ids),
        settings,
      );
      expect(left).toEqual(heard((answer) => !isGone(answer)));
      expect(JSON.stringify(left)).not.toContain('gone');
      expect(withoutDeleted(left, new Set(ids), settings)).toBe(left);
    }),
  );
});
