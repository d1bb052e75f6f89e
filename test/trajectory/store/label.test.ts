import fc from 'fast-check';
import { type FeedbackEntry, labelOf, NO_LABEL } from '../../../src/trajectory/index.js';
import { feedback } from './support.js';

let sequence = 0;
const entry = (changes: Partial<FeedbackEntry>): FeedbackEntry => {
  sequence += 1;
  return { ...feedback('a'), sequence, id: `f${sequence}`, createdAt: sequence, ...changes };
};

test('nothing said, or nothing but words, is no label', () => {
  expect(labelOf([])).toEqual(NO_LABEL);
  expect(labelOf([entry({ comment: 'hm', preferredOver: 'b' }), entry({ goldAnswers: [] })])).toEqual(
    NO_LABEL,
  );
});

test('a label says what the answer is worth and what is right; a reward comes before a rating', () => {
  const label = labelOf([
    entry({ goldAnswers: ['Paris'] }),
    entry({ reward: -1, rating: 1 }),
    entry({ keyId: 'key-2', rating: 0.5 }),
  ]);
  expect(label).toMatchObject({ reward: { value: -0.25 }, golds: { answers: ['Paris'] } });
  expect(labelOf([entry({ reward: 0.5, goldAnswers: ['Paris'] })])).toMatchObject({
    reward: { value: 0.5 },
    golds: { answers: ['Paris'] },
  });
});

test("an admin's word of one kind comes before all other words of both kinds", () => {
  const gold = entry({ keyId: 'boss', role: 'admin', goldAnswers: ['Paris'] });
  for (const rating of [0, 1])
    expect(labelOf([gold, entry({ keyId: 'user', rating })])).toMatchObject({
      reward: null,
      golds: { answers: ['Paris'] },
    });
  const wrong = entry({ keyId: 'boss', role: 'admin', rating: 0 });
  expect(labelOf([wrong, entry({ keyId: 'user', rating: 1, goldAnswers: ['Lyon'] })])).toMatchObject({
    reward: { value: 0 },
    golds: null,
  });
  expect(labelOf([gold, wrong])).toMatchObject({ reward: { value: 0 }, golds: { answers: ['Paris'] } });
});

test('a key counts once, with its last word', () => {
  const spam = Array.from({ length: 50 }, () => entry({ keyId: 'loud', reward: 0 }));
  expect(labelOf([...spam, entry({ keyId: 'quiet', reward: 1 })])).toMatchObject({
    reward: { value: 0.5 },
  });
  expect(labelOf([entry({ reward: 0 }), entry({ reward: 1 }), entry({ comment: 'oh' })])).toMatchObject({
    reward: { value: 1 },
  });
});

test('an admin outweighs everyone', () => {
  const others = ['a', 'b', 'c'].map((keyId) => entry({ keyId, reward: 0, goldAnswers: ['London'] }));
  expect(labelOf([...others, entry({ keyId: 'boss', role: 'admin', reward: 1 })])).toMatchObject({
    reward: { value: 1, sources: [{ keyId: 'boss', role: 'admin' }] },
    golds: null,
  });
});

test('a gold answer counts where at least half of the keys gave it', () => {
  const says = (keyId: string, ...goldAnswers: string[]) => entry({ keyId, goldAnswers });
  const goldsOf = (entries: FeedbackEntry[]) => labelOf(entries).golds;
  expect(goldsOf([says('a', 'Paris', 'City of Light')])).toMatchObject({
    answers: ['Paris', 'City of Light'],
  });
  expect(goldsOf([says('a', 'Paris'), says('b', 'London')])).toMatchObject({ answers: ['Paris', 'London'] });
  expect(goldsOf([says('a', 'Paris'), says('b', 'London'), says('c', 'the paris')])).toMatchObject({
    answers: ['Paris'],
    sources: [{ keyId: 'a' }, { keyId: 'c' }],
  });
  // Who stands behind which: those who contradict each other do not count for one another.
  expect(goldsOf([says('a', 'Paris', 'Paname'), says('b', 'London'), says('c', 'PARIS')])).toMatchObject({
    answers: ['Paris'],
    backers: [[{ keyId: 'a' }, { keyId: 'c' }]],
  });
  expect(goldsOf([says('a', 'Paris'), says('b', 'London')])).toMatchObject({
    backers: [[{ keyId: 'a' }], [{ keyId: 'b' }]],
  });
  expect(goldsOf([says('a', 'x'), says('b', 'y'), says('c', 'z')])).toBeNull();
  expect(goldsOf([says('a', 'A'), says('b', 'The')])).toMatchObject({ answers: ['A', 'The'] });
});

test('the label does not depend on the order of reading, and one key moves a reward by at most its share', () => {
  const entries = fc.array(
    fc.record({
      keyId: fc.constantFrom('a', 'b', 'c', 'd'),
      reward: fc.option(fc.constantFrom(-1, -0.5, 0, 0.5, 1), { nil: null }),
    }),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(entries, fc.nat(), (list, turn) => {
      const made = list.map(entry);
      const at = made.length === 0 ? 0 : turn % made.length;
      const turned = [...made.slice(at), ...made.slice(0, at)];
      expect(labelOf(turned)).toEqual(labelOf(made));
      const label = labelOf(made).reward;
      if (label === null) return;
      expect(new Set(label.sources.map(({ keyId }) => keyId)).size).toBe(label.sources.length);
      const attacked = labelOf([...made, entry({ keyId: 'a', reward: -1 })]).reward;
      if (attacked === null) throw new Error('lost the label');
      expect(Math.abs(attacked.value - label.value)).toBeLessThanOrEqual(2 / attacked.sources.length + 1e-9);
    }),
  );
});
