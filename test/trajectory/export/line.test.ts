import fc from 'fast-check';
import {
  audit,
  exportLine,
  exportText,
  importLine,
  type StoredTrajectory,
} from '../../../src/trajectory/index.js';
import { decodeRecord, encodeRecord } from '../../../src/trajectory/store/codec.js';
import { feedback, makeRecord, notes, tokenizer } from '../store/support.js';

/** As the store would give it back. */
function stored(id: string, words: number): StoredTrajectory {
  const { head, body } = encodeRecord(makeRecord(id, { words }), notes({ userKey: 'ada' }));
  const row = { ...head, sequence: 1, stored_at: 1, audit_state: 'clean', audit_faults: null };
  return decodeRecord(row as never, body as never);
}

const entry = (changes: object) => ({ ...feedback('a', changes), sequence: 1, id: 'f1', createdAt: 5 });

test('the names that trainers read, and aligned arrays', () => {
  const line = exportLine(stored('a', 3), [entry({ goldAnswers: ['Paris'] })]);
  const { input_ids: ids, completion_mask: mask, prompt_length: prompt } = line;
  expect(new Set([ids, mask, line.logprobs, line.sampling_logprobs].map(({ length }) => length))).toEqual(
    new Set([ids.length]),
  );
  expect(mask.slice(0, prompt)).not.toContain(1);
  expect(mask[prompt]).toBe(1);
  expect(line.golden_answers).toEqual(['Paris']);
  expect(line.reward).toBeNull();
  expect(exportLine(stored('a', 1), [entry({ reward: 0.5 })]).reward).toBe(0.5);
});

test.each([
  ['a grade by gold answers', [{ goldAnswers: ['Lyon'] }], { source: 'gold', value: 0 }, [0, 'gold']],
  ['a rollout, of which nothing is said', [], { source: 'gold', value: 1 }, [1, 'gold']],
  ['a judge, where nothing else is known', [], { source: 'judge', value: 0.5 }, [0.5, 'judge']],
  [
    'a vote, before gold answers came',
    [{ goldAnswers: ['Lyon'] }],
    { source: 'majority', value: 1 },
    [null, null],
  ],
  ['a reward that came after the grade', [{ reward: -1 }], { source: 'gold', value: 1 }, [-1, 'feedback']],
  ['a grade by a reward since changed', [{ rating: 0 }], { source: 'feedback', value: 1 }, [0, 'feedback']],
  ['the better one of two', [{ preferredOver: 'b' }], { source: 'feedback', value: 1 }, [null, null]],
  ['the worse one of two', [], { source: 'feedback', value: 0 }, [null, null]],
] as const)('what an answer is worth, and who says so: %s', (_name, said, grade, expected) => {
  const item = stored('a', 1);
  const graded = { ...item, head: { ...item.head, grade: { ...grade, rule: 'x', gradedAt: 1 } } };
  const line = exportLine(
    graded,
    said.map((changes) => entry(changes)),
  );
  expect([line.reward, line.reward_source]).toEqual(expected);
});

test('real numbers are written as such in every line', () => {
  const item = stored('a', 1);
  const { record } = item;
  const odd = { ...record, logprobs: [-1, -0.5, 1e-7, -2e21], samplingLogprobs: [0, -0] };
  const text = exportText(exportLine({ ...item, record: odd }, [entry({ reward: 1 })]));
  expect(text).toContain('"logprobs":[-1.0,-0.5,1e-7,-2e+21],"sampling_logprobs":[0.0,0.0]');
  expect(text).toContain('"reward":1.0');
  expect(JSON.parse(text)).toMatchObject({ reward: 1, logprobs: odd.logprobs });
});

test('a line read again is the record, its notes and its feedback', () => {
  fc.assert(
    fc.property(fc.nat({ max: 30 }), fc.string({ unit: 'binary', maxLength: 20 }), (words, comment) => {
      const item = stored('a', words);
      const said = [entry({ comment, reward: 1 })];
      const read = importLine(exportText(exportLine(item, said)), 'line 1');
      expect(read).toEqual({ record: item.record, notes: item.notes, feedback: said });
    }),
  );
});

test('a log-probability that is no number is none after an export and an import either', () => {
  const item = stored('a', 1);
  const at = item.record.lossMask.indexOf(1);
  const [logprobs, samplingLogprobs] = [item.record.logprobs, item.record.samplingLogprobs].map((all) =>
    all.with(at, Number.NaN),
  ) as [number[], number[]];
  const broken = { ...item, record: { ...item.record, logprobs, samplingLogprobs } };
  const { record } = importLine(exportText(exportLine(broken, [])), 'line 1');
  expect(record).toEqual(broken.record);
  expect(audit(record, tokenizer)).not.toEqual([]);
});

test('lines from before rollouts knew their origin have none', () => {
  const line = exportLine(stored('a', 1), []);
  const { notes: about, ...others } = JSON.parse(line.searchloop) as { notes: object };
  const { originId, ...older } = about as { originId: null };
  expect(originId).toBeNull();
  const text = exportText({ ...line, searchloop: JSON.stringify({ ...others, notes: older }) });
  expect(importLine(text, 'line 1').notes.originId).toBeNull();
});

const good = (): Record<string, unknown> => ({ ...exportLine(stored('a', 1), []) });

function withRest(changes: object): string {
  const line = good();
  return JSON.stringify({
    ...line,
    searchloop: JSON.stringify({ ...JSON.parse(line.searchloop as string), ...changes }),
  });
}

test.each([
  ['not JSON', () => '{', 'expected JSON'],
  ['no object', () => '[]', 'line 7'],
  ['an id that is no text', () => JSON.stringify({ ...good(), id: 7 }), 'id'],
  ['a mask of other numbers', () => JSON.stringify({ ...good(), completion_mask: [2] }), 'completion_mask'],
  ['a rest that is no JSON', () => JSON.stringify({ ...good(), searchloop: '{' }), 'searchloop'],
  ['a rest without its fields', () => JSON.stringify({ ...good(), searchloop: '{}' }), 'searchloop'],
  ['a run of an origin that there is not', () => withRest({ runs: [['elsewhere', 1]] }), 'runs.0.0'],
  ['a search without its passages', () => withRest({ searches: [{}] }), 'searches.0'],
  ['a method without a name', () => withRest({ method: '' }), 'method'],
  ['an id with a NUL', () => JSON.stringify({ ...good(), id: 'a\0' }), 'no NUL'],
  ['fewer ids than runs', () => JSON.stringify({ ...good(), input_ids: [1] }), 'runs covers'],
])('%s is refused, and the line is named', (_name, line, message) => {
  expect(() => importLine(line(), 'line 7')).toThrow(message);
  expect(() => importLine(line(), 'line 7')).toThrow('line 7');
});
