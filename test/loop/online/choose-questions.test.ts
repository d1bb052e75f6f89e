import fc from 'fast-check';
import { chooseQuestions } from '../../../src/loop/online/choose-questions.js';
import type { LabelledAnswer } from '../../../src/loop/online/known-answer.js';

const answer = (key: string, ...keys: string[]): LabelledAnswer =>
  ({
    key,
    head: { keyId: null },
    goldSources: keys.map((keyId) => ({ keyId, role: keyId === 'boss' ? 'admin' : 'feedback' })),
  }) as unknown as LabelledAnswer;
const mapOf = (answers: LabelledAnswer[]) => new Map(answers.map((item) => [item.key, item]));
const settings = { count: 4, seed: 1, keyShare: 1 };

test('a pass meets every question once before any comes again', async () => {
  const questions = mapOf(Array.from({ length: 12 }, (_, i) => answer(`q${i}`, 'boss')));
  let place = { pass: 0, cursor: '' };
  const seen: string[] = [];
  for (let step = 0; step < 3; step++) {
    const choice = await chooseQuestions(questions, place, settings);
    seen.push(...choice.chosen.map(({ key }) => key));
    place = choice;
  }
  expect(new Set(seen).size).toBe(12);
  const again = await chooseQuestions(questions, place, settings);
  expect(again.chosen).toHaveLength(4);
  expect(again.pass).toBe(1);
});

test('the same place gives the same questions', async () => {
  const questions = mapOf(Array.from({ length: 9 }, (_, i) => answer(`q${i}`, 'boss')));
  const keys = async () =>
    (await chooseQuestions(questions, { pass: 3, cursor: '5' }, settings)).chosen.map(({ key }) => key);
  expect(await keys()).toEqual(await keys());
});

test('one key fills its share of a step and no more; an admin has no limit; two keys share the weight', async () => {
  const share = { ...settings, count: 8, keyShare: 0.25 };
  const from = (...keys: string[]) =>
    chooseQuestions(
      mapOf(Array.from({ length: 40 }, (_, i) => answer(`q${i}`, ...keys))),
      { pass: 0, cursor: '' },
      share,
    );
  const alone = await from('a');
  expect(alone.chosen).toHaveLength(2);
  expect(alone.overShare).toBeGreaterThan(0);
  expect((await from('boss')).chosen).toHaveLength(8);
  expect((await from('a', 'b')).chosen).toHaveLength(4);
});

test('never a question twice in a step, never beyond the share', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(30), fc.constantFrom('a', 'b', 'c', 'boss')), { maxLength: 60 }),
      fc.integer({ min: 1, max: 12 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      async (list, count, keyShare) => {
        const questions = mapOf(list.map(([i, key]) => answer(`q${i}`, key)));
        const { chosen } = await chooseQuestions(
          questions,
          { pass: 0, cursor: '' },
          { count, seed: 2, keyShare },
        );
        expect(new Set(chosen.map(({ key }) => key)).size).toBe(chosen.length);
        expect(chosen.length).toBeLessThanOrEqual(count);
        for (const name of ['a', 'b', 'c'])
          expect(
            chosen.filter(({ goldSources }) => goldSources[0]?.keyId === name).length,
          ).toBeLessThanOrEqual(Math.max(1, Math.floor(keyShare * count)));
      },
    ),
  );
});
