// Answers of the gate outlive the process, as far as they hold.

import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GateAnswers } from '../../../../src/loop/online/gate/answers.js';
import { fingerprintMatch } from '../../../../src/reward/index.js';

const folder = mkdtempSync(join(tmpdir(), 'gate-answers-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const freshPath = (): string => join(folder, `${files++}.jsonl`);

async function opened(path: string, { stamp = 'one', notes = [] as string[] } = {}): Promise<GateAnswers> {
  const answers = new GateAnswers({ path, stamp, onNote: (line) => notes.push(line) });
  await answers.open();
  return answers;
}

const given = (answer: string | null) => ({ answer, validActions: 2, invalidActions: 1 });

test('what was given is known to the next process, and no text of it is on disk', async () => {
  const path = freshPath();
  const first = await opened(path);
  await first.add('a', 'asked', given('The Lisbon'));
  await first.add('b', 'asked', given(null));
  const second = await opened(path);
  expect(fingerprintMatch(second.get('a')?.answer ?? null, ['lisbon'])).toBe(1);
  expect(second.get('b')).toEqual({ asked: 'asked', answer: null, validActions: 2, invalidActions: 1 });
  expect(readFileSync(path, 'utf8')).not.toMatch(/lisbon/i);
});

test('a line that a kill cut off is passed over, and what comes after it is whole', async () => {
  const path = freshPath();
  await (await opened(path)).add('a', 'asked', given('x'));
  appendFileSync(path, '{"name":"b","ask');
  await (await opened(path)).add('c', 'asked', given('y'));
  const third = await opened(path);
  expect(['a', 'b', 'c'].map((name) => third.get(name) !== undefined)).toEqual([true, false, true]);
});

test('under another stamp nothing is taken over, and a damaged file is told of', async () => {
  const path = freshPath();
  await (await opened(path)).add('a', 'asked', given('x'));
  expect((await opened(path, { stamp: 'two' })).get('a')).toBeUndefined();
  expect((await opened(path)).get('a')).toBeUndefined();
  appendFileSync(path, 'damage\n{}\n');
  const notes: string[] = [];
  expect((await opened(path, { notes })).get('a')).toBeUndefined();
  expect(notes).toEqual([expect.stringContaining('asked anew')]);
});

test('answers to conversations that are gone leave the disk', async () => {
  const path = freshPath();
  const answers = await opened(path);
  await answers.add('a', 'here', given('x'));
  await answers.add('b', 'gone', given('y'));
  await answers.forgetAllBut(new Set(['here']));
  expect(answers.get('b')).toBeUndefined();
  expect(readFileSync(path, 'utf8')).not.toContain('gone');
  expect((await opened(path)).get('a')).toBeDefined();
});

test('where nothing can be written, answers are kept in memory and it is said once', async () => {
  const path = freshPath();
  mkdirSync(path);
  const notes: string[] = [];
  const answers = await opened(path, { notes });
  await answers.add('a', 'asked', given('x'));
  await answers.add('b', 'asked', given('x'));
  expect(answers.get('b')).toBeDefined();
  expect(notes.filter((note) => note.includes('not kept on disk'))).toHaveLength(1);
});
