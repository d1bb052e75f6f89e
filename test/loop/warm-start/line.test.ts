import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readWarmStart } from '../../../src/loop/index.js';
import type { TrajectoryRecord } from '../../../src/trajectory/index.js';
import { makeRecord } from '../../trajectory/store/support.js';

const folder = mkdtempSync(join(tmpdir(), 'warm-start-line-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const lineOf = (record: object) => ({
  questionId: 'q',
  dataset: 'nq',
  goldenAnswers: ['Paris'],
  kind: 'plain',
  settingsDigest: 'd',
  record,
});
const whole = makeRecord('a', { words: 3 });

function read(...lines: object[]) {
  const path = join(folder, 'warm.jsonl');
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return readWarmStart(path);
}

test('a line comes back as it was written', async () => {
  const lines = [lineOf(whole), { ...lineOf(makeRecord('b')), kind: 'rag' }];
  expect(await read(...lines)).toEqual(lines);
});

test.each([
  'tokenIds',
  'origin',
  'lossMask',
  'logprobs',
  'samplingLogprobs',
  'versions',
  'turnStarts',
  'searches',
  'observations',
] as const)('a record without %s is refused, with file, line and field', async (name) => {
  const { [name]: _gone, ...rest } = whole;
  await expect(read(lineOf(whole), lineOf(rest))).rejects.toThrow(
    new RegExp(`warm\\.jsonl, line 2: .*record\\.${name}`, 's'),
  );
});

test.each([
  ['a shorter array', { logprobs: whole.logprobs.slice(1) }, /expected \d+ entries, as many as tokenIds/],
  ['an origin that there is not', { origin: whole.origin.map(() => 'elsewhere') }, /record\.origin\[0\]/],
  ['a number that was none', { logprobs: whole.logprobs.map(() => null) }, /record\.logprobs\[0\]/],
  ['half an id', { tokenIds: whole.tokenIds.map((id) => id + 0.5) }, /record\.tokenIds\[0\]/],
  ['a range of one end', { searches: [{ observation: [1] }] }, /record\.searches\[0\]/],
])('%s is refused', async (_name, changes: object, message) => {
  const record: TrajectoryRecord = { ...whole, ...changes };
  await expect(read(lineOf(record))).rejects.toThrow(message);
});
