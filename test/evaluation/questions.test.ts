import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isValidation, partOf, readQuestions, sampleOrder, selectPart } from '../../src/evaluation/index.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'questions-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const file = async (...lines: string[]): Promise<string> => {
  const path = join(folder, 'questions.jsonl');
  await writeFile(path, lines.join('\n'));
  return path;
};

const line = (id: string, more: object = {}): string =>
  JSON.stringify({ id, dataset: 'nq', question: `q ${id}?`, golden_answers: ['a'], ...more });

test('fields are read, others left out, and what a set does not say is empty', async () => {
  const path = await file(line('1', { supporting_titles: ['T'], source: 'x' }), '', line('2'));
  expect(await readQuestions(path)).toEqual([
    { id: '1', dataset: 'nq', question: 'q 1?', goldenAnswers: ['a'], supportingTitles: ['T'] },
    { id: '2', dataset: 'nq', question: 'q 2?', goldenAnswers: ['a'], supportingTitles: [] },
  ]);
});

test.each([
  ['a line that is no JSON', () => file(line('1'), '{', line('2')), /line 2: expected JSON/],
  [
    'a field that is missing',
    () => file(line('1', { golden_answers: undefined })),
    /line 1[\s\S]*golden_answers/,
  ],
  ['no gold answer', () => file(line('1', { golden_answers: [] })), /line 1[\s\S]*golden_answers/],
  ['an id that comes twice', () => file(line('1'), line('1')), /line 2: id "1" came before/],
  ['no file', async () => join(folder, 'none'), /no question file at/],
])('refuses %s, and says where', async (_name, make, message) => {
  await expect(readQuestions(await make())).rejects.toThrow(message);
});

test('the split is the one that was agreed on', () => {
  // int(sha256('v' + id)[:8], 16) % 100, worked out by other means.
  expect(isValidation('triviaqa-f7f78669de417177')).toBe(true);
  expect(isValidation('popqa-1141769-22-1189033')).toBe(true);
  expect(isValidation('2wikimultihopqa-91d1409a08a111ebbd79ac1f6bf848b6')).toBe(false);
  // 19 and 20 of 100.
  expect([isValidation('id-250'), isValidation('id-148')]).toEqual([true, false]);
  expect(partOf('nq-b3b8f041f2d0354f')).toBe('validation');
});

test('the parts share no question and lose none', async () => {
  const questions = await readQuestions(
    await file(...Array.from({ length: 400 }, (_, i) => line(`id-${i}`))),
  );
  const validation = selectPart(questions, 'validation');
  const training = selectPart(questions, 'training');
  expect(validation.length + training.length).toBe(400);
  expect(validation.some(({ id }) => training.some((other) => other.id === id))).toBe(false);
  expect(validation.length).toBeGreaterThan(50);
  expect(validation.length).toBeLessThan(110);
  expect(selectPart(questions, 'all')).toHaveLength(400);
});

test('a sample does not depend on the order of the file', async () => {
  const questions = await readQuestions(await file(...Array.from({ length: 30 }, (_, i) => line(`id-${i}`))));
  const order = sampleOrder(questions).map(({ id }) => id);
  expect(sampleOrder([...questions].reverse()).map(({ id }) => id)).toEqual(order);
  expect(order).not.toEqual(questions.map(({ id }) => id));
});
