// Comparisons in memory: as many as it has room for, and by any order what a plain list of them says.

import fc from 'fast-check';
import { Preferences } from '../../../src/loop/online/preferences.js';
import { feedback } from '../../trajectory/store/support.js';

let sequence = 0;
const says = (better: string, worse: string, keyId = 'one') => {
  sequence++;
  const id = `f${sequence}`;
  return { ...feedback(better, { preferredOver: worse, keyId }), sequence, id, createdAt: 0 };
};
const verdicts = (known: Preferences) => known.all().map(({ better, worse }) => `${better} ${worse}`);

test('beyond the bound the oldest pairs go, and it is said which answers are in none any more', () => {
  const known = new Preferences(2);
  for (const [better, worse] of [
    ['a', 'b'],
    ['a', 'c'],
    ['d', 'c'],
    ['e', 'd'],
  ] as const)
    known.add(says(better, worse));
  expect(known.trim().sort()).toEqual(['a', 'b']);
  expect(verdicts(known)).toEqual(['d c', 'e d']);
  expect(['a', 'b', 'c', 'd', 'e'].map((id) => known.has(id))).toEqual([false, false, true, true, true]);
  expect(known.trim()).toEqual([]);
});

test('in any order of words and deletions: what is left is what was said of it', () => {
  const id = fc.constantFrom('a', 'b', 'c', 'd');
  const word = fc.record({
    better: id,
    worse: id,
    keyId: fc.constantFrom('one', 'two'),
    isGone: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(word, { maxLength: 20 }), id, (words, forgotten) => {
      const known = new Preferences();
      const said = words
        .filter(({ better, worse }) => better !== worse)
        .map(({ better, worse, keyId, isGone }) => ({ isGone, entry: says(better, worse, keyId) }));
      for (const { entry } of said) known.add(entry);
      // A key that had said the opposite before is heard with that, once its last word is gone.
      const left = said.filter(({ isGone }) => !isGone).map(({ entry }) => entry);
      known.follow(['a', 'b', 'c', 'd'], left);
      known.forget(forgotten);
      const fresh = new Preferences();
      for (const entry of left)
        if (entry.trajectoryId !== forgotten && entry.preferredOver !== forgotten) fresh.add(entry);
      expect(verdicts(known).sort()).toEqual(verdicts(fresh).sort());
      for (const each of ['a', 'b', 'c', 'd']) expect(known.has(each)).toBe(fresh.has(each));
    }),
  );
});
