import { IntegrityError } from '../../src/errors.js';
import type { TrajectoryFields } from '../../src/trajectory/builder.js';
import { createTrajectoryBuilder } from '../../src/trajectory/index.js';
import { insideInformation } from '../../src/trajectory/information.js';
import { createPieceTokenizer } from '../support/piece-tokenizer.js';

const tokenizer = createPieceTokenizer();
const piece = tokenizer.piece;

const fields: TrajectoryFields = {
  id: 't',
  createdAt: 1,
  method: 'search-r1',
  promptTemplateDigest: 'p',
  modelDigest: 'm',
  indexSnapshotId: null,
  sampling: {},
  seed: null,
  groupId: null,
  question: 'q',
  answer: null,
  stop: 'budget',
  validActions: 0,
  invalidActions: 0,
  forced: false,
};

const start = () => {
  const builder = createTrajectoryBuilder({ tokenizer, adapterVersion: 'v1' });
  builder.prompt([piece('p'), piece('q')]);
  return builder;
};

test('keeps the arrays aligned: mask and log-probabilities exactly where the policy sampled', () => {
  const builder = start();
  builder.sampled({
    ids: [piece('a'), piece('b'), piece('!')],
    logprobs: [-1, -2, -3],
    samplingLogprobs: [0, -4, -5],
  });
  expect(builder.environment('search', [piece('d')])).toEqual([5, 6]);
  builder.sampled({ ids: [piece('z')], logprobs: [-6], samplingLogprobs: [-7] });
  const record = builder.build(fields);
  expect(record.tokenIds).toEqual(['p', 'q', 'a', 'b', '!', 'd', 'z'].map(piece));
  expect(record.lossMask).toEqual([0, 0, 1, 1, 1, 0, 1]);
  expect(record.logprobs).toEqual([0, 0, -1, -2, -3, 0, -6]);
  expect(record.samplingLogprobs).toEqual([0, 0, 0, -4, -5, 0, -7]);
  expect(record.turnStarts).toEqual([2, 6]);
  expect(record.versions).toEqual([{ start: 0, end: 7, adapterVersion: 'v1' }]);
  expect(record.observations).toEqual([{ kind: 'search', range: [5, 6], text: 'd' }]);
});

test('the end token of a turn is trained', () => {
  const builder = start();
  builder.sampled({ ids: [piece('a'), tokenizer.endId], logprobs: [-1, -2], samplingLogprobs: [-1, -2] });
  expect(builder.build(fields).lossMask).toEqual([0, 0, 1, 1]);
});

test('refuses a span whose arrays differ in length, and appends nothing of it', () => {
  const builder = start();
  const broken = { ids: [piece('a'), piece('b')], logprobs: [-1], samplingLogprobs: [-1, -1] };
  expect(() => builder.sampled(broken)).toThrow(/must have one length, got 2, 2, 1, 2/);
  expect(builder.length).toBe(2);
  expect(builder.build(fields).turnStarts).toEqual([]);
});

test('refuses a second or empty prompt, an empty observation, a turn before the prompt', () => {
  expect(() => start().prompt([1])).toThrow(IntegrityError);
  expect(() => start().environment('corrective', [])).toThrow(IntegrityError);
  const empty = createTrajectoryBuilder({ tokenizer, adapterVersion: 'v' });
  expect(() => empty.prompt([])).toThrow(IntegrityError);
  expect(() => empty.sampled({ ids: [1], logprobs: [-1], samplingLogprobs: [-1] })).toThrow(IntegrityError);
});

test('tokens inside a self-written information block are not trained; the tags are', () => {
  const texts = ['x<info', 'rmation>', 'fact ', 'more</', 'information>', 'y'];
  const ids = texts.map(piece);
  expect(insideInformation(ids, tokenizer)).toEqual([false, false, true, true, false, false]);
  const builder = start();
  builder.sampled({ ids, logprobs: ids.map(() => -1), samplingLogprobs: ids.map(() => -1) });
  const record = builder.build(fields);
  expect(record.origin.slice(2)).toEqual([
    'policy',
    'policy',
    'policyInformation',
    'policyInformation',
    'policy',
    'policy',
  ]);
  expect(record.lossMask.slice(2)).toEqual([1, 1, 0, 0, 1, 1]);
  expect(record.logprobs.slice(2)).toEqual([-1, -1, -1, -1, -1, -1]);
});

test('an information block that never closes runs to the end of the turn; two blocks are two', () => {
  const flags = (texts: string[]) => insideInformation(texts.map(piece), tokenizer);
  expect(flags(['<information>', 'a', 'b'])).toEqual([false, true, true]);
  expect(
    flags(['<information>', 'a', '</information>', 'b', '<information>', 'c', '</information>']),
  ).toEqual([false, true, false, false, false, true, false]);
  expect(flags(['</information>', 'a'])).toEqual([false, false]);
});
