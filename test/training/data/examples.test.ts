import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileFormatError, InvalidInputError, NotFoundError } from '../../../src/errors.js';
import { readExamples } from '../../../src/training/index.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-examples-'));
afterAll(() => rmSync(folder, { recursive: true }));

const tokenizer = { decode: (ids: ArrayLike<number>) => Array.from(ids, (id) => `<${id}>`).join('') };
const LIMITS = { vocabSize: 50, maxTokens: 6, tokenizer };
const record = {
  id: 'one',
  tokenIds: [1, 2, 3, 4, 5],
  origin: ['prompt', 'policy', 'environment', 'policyInformation', 'policy'],
  lossMask: [0, 1, 0, 0, 1],
  question: 'kept out of it',
};

let files = 0;
const read = (...lines: unknown[]) => {
  const path = join(folder, `${files++}.jsonl`);
  writeFileSync(
    path,
    lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'),
  );
  return readExamples(path, LIMITS);
};

test('records and lines that hold one are read alike; what was retrieved is marked', async () => {
  const { examples, questionIds, digest } = await read(record, '', {
    questionId: 'q',
    record: { ...record, id: undefined },
  });
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  expect(examples).toHaveLength(2);
  expect(questionIds).toEqual([null, 'q']);
  expect(examples[0]).toEqual({
    id: 'one',
    tokenIds: Int32Array.from(record.tokenIds),
    lossMask: Uint8Array.from(record.lossMask),
    environmentMask: Uint8Array.from([0, 0, 1, 0, 0]),
  });
  expect(examples[1]?.id).toMatch(/jsonl, line 3$/);
});

test.each([
  [{ ...record, lossMask: [0, 1] }, /5 tokenIds, but 2 in lossMask/],
  [{ ...record, origin: ['prompt'] }, /5 tokenIds, but 1 in origin/],
  [{ ...record, tokenIds: [1, 2, 3, 4, 50] }, /token 50, but the vocabulary has 50/],
  [{ ...record, lossMask: [1, 1, 0, 0, 1], origin: undefined }, /nothing predicts the first token/],
  [{ ...record, lossMask: [0, 0, 0, 0, 0], origin: undefined }, /nothing to learn/],
  [{ ...record, lossMask: [0, 1, 1, 0, 1] }, /token 2: lossMask is 1, origin "environment"/],
  [{ tokenIds: [1, 2, 3, 4, 5, 6, 7], lossMask: [0, 1, 1, 1, 1, 1, 1] }, /7 tokens, the limit is 6/],
  [{ tokenIds: [], lossMask: [] }, /line 1/],
  [{ tokenIds: [1, -2], lossMask: [0, 1] }, /tokenIds/],
])('%j is refused with its line', async (line, message) => {
  const failure = await read(line, record).catch((error) => error);
  expect(failure).toBeInstanceOf(InvalidInputError);
  expect(failure.message).toMatch(message);
  expect(failure.message).toMatch(/line 1/);
});

test('a trajectory that another tokenizer wrote is refused with its line', async () => {
  const observed = (text: string) => ({ ...record, observations: [{ kind: 'search', range: [2, 4], text }] });
  expect((await read(observed('<3><4>'))).examples).toHaveLength(1);
  expect((await read({ ...record, observations: ['of somebody else'] })).examples).toHaveLength(1);
  await expect(read(record, { record: observed('Doc 1') })).rejects.toThrow(
    /line 2: tokens 2 to 4 are not, .* it was recorded with another one/,
  );
});

test('a missing, empty or broken file is told', async () => {
  await expect(readExamples(join(folder, 'none'), LIMITS)).rejects.toThrow(NotFoundError);
  await expect(read('')).rejects.toThrow(/no trajectory/);
  await expect(read(record, '{"tokenIds": [', record)).rejects.toThrow(FileFormatError);
});
