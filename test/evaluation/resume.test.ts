// Evaluations that go on over what an earlier one left in their folder.

import { appendFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RetrievalError, UnavailableError } from '../../src/errors.js';
import { readSettings } from '../../src/evaluation/folder.js';
import {
  evaluate,
  type Question,
  readResults,
  readTranscripts,
  reportOf,
  settingsDigest,
} from '../../src/evaluation/index.js';
import { capitals, createSetting, questions, useRunFolder } from './support/setting.js';

let folder: string;
useRunFolder((made) => {
  folder = made;
});

test('a run that was stopped goes on: finished questions are not asked again, a cut line is', async () => {
  const first = createSetting();
  await evaluate({ ...first.options, questions: questions.slice(0, 2) });
  const path = join(folder, 'results.jsonl');
  const whole = await readFile(path, 'utf8');
  await writeFile(path, whole.slice(0, -20));
  const second = createSetting();
  const results = await evaluate(second.options);
  expect(results.map(({ id }) => id)).toEqual(['q0', 'q1', 'q2', 'q3']);
  expect(second.generator.opened).toHaveLength(3);
  expect((await readResults(folder)).map(({ id }) => id).sort()).toEqual(['q0', 'q1', 'q2', 'q3']);
  const third = createSetting();
  expect(await evaluate(third.options)).toEqual(results);
  expect(third.generator.opened).toHaveLength(0);
});

test('a question whose gold answers or wording changed under its id is asked again, the others are not', async () => {
  const first = createSetting();
  const before = await evaluate(first.options);
  const [portugal, spain, norway] = questions as [Question, Question, Question];
  const corrected = [
    { ...portugal, goldenAnswers: ['Porto'] },
    { ...spain, question: 'What is the capital of Norway?' },
    norway,
    ...questions.slice(3),
  ];
  const second = createSetting();
  const notes: string[] = [];
  const results = await evaluate({
    ...second.options,
    questions: corrected,
    onNote: (line) => notes.push(line),
  });
  expect(second.generator.opened).toHaveLength(2);
  expect(notes).toEqual([`${folder}: asked again, since question or gold answers have changed: 2`]);
  expect(results.map(({ em }) => em)).toEqual([0, 0, 1, 0]);
  expect(await readResults(folder)).toHaveLength(4);
  expect((await readTranscripts(folder)).find(({ id }) => id === 'q0')?.goldenAnswers).toEqual(['Porto']);
  const about = { digest: 'd', settings: {} };
  const digests = [before, results, [...results].reverse()].map((of) => reportOf(of, about).questionsDigest);
  expect(digests[1]).not.toBe(digests[0]);
  expect(digests[2]).toBe(digests[1]);
});

test('results that do not tell what was asked are asked again', async () => {
  await evaluate(createSetting().options);
  const path = join(folder, 'results.jsonl');
  const lines = (await readFile(path, 'utf8')).replace(/"questionDigest":"\w+",/, '');
  await writeFile(path, lines);
  const { options, generator } = createSetting();
  const notes: string[] = [];
  await evaluate({ ...options, onNote: (line) => notes.push(line) });
  expect(generator.opened).toHaveLength(1);
  expect(notes).toEqual([`${folder}: asked again, since their results do not tell what was asked: 1`]);
});

test('two runs over one folder take turns, and no question is answered twice', async () => {
  const runs = [createSetting(), createSetting()];
  const both = await Promise.all(runs.map(({ options }) => evaluate(options)));
  expect(both[0]).toEqual(both[1]);
  expect(runs.flatMap(({ generator }) => generator.opened)).toHaveLength(4);
  expect((await readFile(join(folder, 'results.jsonl'), 'utf8')).trim().split('\n')).toHaveLength(4);
  expect(await readdir(folder)).toEqual(['results.jsonl', 'settings.json', 'transcripts.jsonl']);
});

test('settings that are not those of an evaluation are refused with file and field', async () => {
  await mkdir(folder);
  await writeFile(join(folder, 'settings.json'), '{"settings": {}}');
  await expect(readSettings(folder)).rejects.toThrow(/settings\.json: [\s\S]*digest/);
});

test('results of other settings are refused, with both digests', async () => {
  const { options } = createSetting();
  await evaluate(options);
  const other = { method: 'search-r1', topK: 5 };
  await expect(evaluate({ ...options, settings: other })).rejects.toThrow(
    new RegExp(`${settingsDigest({ method: 'search-r1' })}.*${settingsDigest(other)}`),
  );
});

test('a line that is no result is named', async () => {
  const { options } = createSetting();
  await evaluate(options);
  await appendFile(join(folder, 'results.jsonl'), '{"id":"x"}\n');
  await expect(evaluate(options)).rejects.toThrow(/results\.jsonl, line 5: /);
});

test('an interruption stops it; the next run asks the rest', async () => {
  const stop = new AbortController();
  const { options } = createSetting();
  await expect(
    evaluate({
      ...options,
      concurrency: 1,
      signal: stop.signal,
      onProgress: ({ done }) => done > 0 && stop.abort(),
    }),
  ).rejects.toThrow(/cancelled/);
  expect(await readResults(folder)).toHaveLength(1);
  expect(await evaluate(createSetting().options)).toHaveLength(4);
});

describe('searches that fail', () => {
  /** @param isAway  by the number of the search and its query */
  const settingWith = (isAway: (call: number, query: string) => boolean) => {
    let calls = 0;
    const search: typeof capitals.search = async (queries, k, options) => {
      calls++;
      if (queries.some((query) => isAway(calls, query))) throw new RetrievalError('the engine is away');
      return capitals.search(queries, k, options);
    };
    return createSetting(undefined, { retriever: { ...capitals, search } });
  };

  test('a while: the answer is begun again, and is what it would have been', async () => {
    const { options } = settingWith((call) => call <= 2);
    const results = await evaluate({ ...options, concurrency: 1 });
    expect(results.map(({ em }) => em)).toEqual([1, 1, 1, 0]);
    expect(await readTranscripts(folder)).toHaveLength(4);
  });

  test('for good: the run ends, keeps no answer that met it, and goes on where it was', async () => {
    const { options } = settingWith((call) => call > 1);
    await expect(evaluate({ ...options, concurrency: 1 })).rejects.toThrow(UnavailableError);
    expect((await readResults(folder)).map(({ id, em }) => [id, em])).toEqual([['q0', 1]]);
    expect((await evaluate(createSetting().options)).map(({ em }) => em)).toEqual([1, 1, 1, 0]);
  });

  test("one alone, while others are answered: the policy's own doing, which counts", async () => {
    const { options } = settingWith((_call, query) => query.endsWith('Portugal'));
    expect((await evaluate(options)).map(({ em }) => em)).toEqual([0, 1, 1, 0]);
  });
});

test('a question that does not fit the window counts as unanswered, is named, and is not asked again', async () => {
  const { options } = createSetting();
  const long: Question = { ...(questions[1] as Question), question: `Is it ${'far, '.repeat(3000)}or not?` };
  const asked = { ...options, questions: [questions[0] as Question, long, questions[2] as Question] };
  const notes: string[] = [];
  const onNote = (line: string) => notes.push(line);
  const results = await evaluate({ ...asked, onNote });
  expect(results.map(({ id, em, answer }) => [id, em, answer])).toEqual([
    ['q0', 1, 'Lisbon'],
    ['q1', 0, null],
    ['q2', 1, 'Oslo'],
  ]);
  expect(notes).toEqual([
    expect.stringMatching(/^question q1 cannot be asked, and counts as unanswered: .*context length is 4096/),
  ]);
  expect(await evaluate({ ...asked, onNote })).toEqual(results);
  expect(notes).toHaveLength(1);
});
