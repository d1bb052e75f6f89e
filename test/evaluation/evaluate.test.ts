// Questions asked of a policy: results, transcripts and their report.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readSettings } from '../../src/evaluation/folder.js';
import {
  chosenTranscripts,
  evaluate,
  markdownReport,
  markdownTranscripts,
  readResults,
  readTranscripts,
  reportOf,
  settingsDigest,
} from '../../src/evaluation/index.js';
import type { StoredTranscript } from '../../src/evaluation/transcript.js';
import type { RolloutRunner } from '../../src/rollout/index.js';
import { createSetting, questions, useRunFolder } from './support/setting.js';

let folder: string;
useRunFolder((made) => {
  folder = made;
});

test('every question has its result, in the order of the questions, and its line', async () => {
  const { options } = createSetting();
  const results = await evaluate(options);
  expect(
    results.map(({ id, answer, em, searches, goldShown, stop }) => [
      id,
      answer,
      em,
      searches,
      goldShown,
      stop,
    ]),
  ).toEqual([
    ['q0', 'Lisbon', 1, 1, true, 'answer'],
    ['q1', 'Madrid', 1, 1, true, 'answer'],
    ['q2', 'Oslo', 1, 1, true, 'answer'],
    ['q3', 'unknown', 0, 1, false, 'answer'],
  ]);
  const [first] = results;
  expect(first).toMatchObject({
    validActions: 2,
    invalidActions: 0,
    formatScore: 1,
    queries: ['capital of Portugal'],
  });
  const lines = await readResults(folder);
  expect(lines).toHaveLength(4);
  expect(lines).toEqual(expect.arrayContaining(results));
  expect(await readSettings(folder)).toEqual({
    digest: settingsDigest({ method: 'search-r1' }),
    settings: { method: 'search-r1' },
  });
});

test('transcripts say who wrote what; right and wrong ones take turns', async () => {
  await evaluate({ ...createSetting().options, concurrency: 1 });
  const transcripts = await readTranscripts(folder);
  expect(transcripts.map(({ id, em }) => [id, em])).toEqual([
    ['q0', 1],
    ['q1', 1],
    ['q2', 1],
    ['q3', 0],
  ]);
  expect(transcripts[0]?.parts.map(({ from }) => from)).toEqual([
    'prompt',
    'policy',
    'environment',
    'policy',
  ]);
  const chosen = chosenTranscripts(transcripts, 3);
  // Whatever the order in which they were answered.
  expect(chosenTranscripts([...transcripts].reverse(), 3)).toEqual(chosen);
  const text = markdownTranscripts(chosen);
  expect(text.match(/; stop: answer; (right|wrong)$/gm)).toEqual([
    '; stop: answer; right',
    '; stop: answer; wrong',
    '; stop: answer; right',
  ]);
  expect(chosenTranscripts(transcripts, 10)).toHaveLength(4);
  const fenced = { ...(chosen[0] as StoredTranscript), stop: null };
  const quoting = { ...fenced, parts: [{ from: 'policy' as const, text: 'a ``` b' }] };
  expect(markdownTranscripts([quoting])).toMatch(/stop: unknown; right\n\n````text\n> a ``` b\n````\n$/);
  expect(text).toMatch(/^> <think>so<\/think><answer>(Lisbon|Madrid|Oslo)<\/answer>$/m);
  expect(text).not.toContain('Work out the answer');
  await expect(readTranscripts(join(folder, 'none'))).rejects.toThrow(/no transcripts/);
});

test('each of several runners answers every so many-th question, however long the others take', async () => {
  const { options } = createSetting();
  const asked: string[][] = [[], [], []];
  const runners = asked.map(
    (names, slot): RolloutRunner => ({
      async *run(request) {
        names.push(/of (\w+)/.exec(JSON.stringify(request.messages))?.[1] as string);
        // The first takes longest.
        await sleep(30 * (2 - slot));
        return yield* (options.runner as RolloutRunner).run(request);
      },
    }),
  );
  const alone = await evaluate({ ...options, output: join(folder, 'alone'), concurrency: 1 });
  const results = await evaluate({ ...options, runner: runners });
  expect(asked).toEqual([['Portugal', 'France'], ['Spain'], ['Norway']]);
  const told = (of: typeof results) => of.map(({ id, answer }) => [id, answer]);
  expect(told(results)).toEqual(told(alone));
});

test('a failure ends the run, keeps what was finished and takes nothing new', async () => {
  let tokens = 0;
  const { options, generator } = createSetting(() => {
    tokens += 1;
    if (tokens === 60) throw new Error('the engine broke');
  });
  await expect(evaluate({ ...options, concurrency: 1 })).rejects.toThrow('the engine broke');
  expect(generator.opened.length).toBeLessThan(4);
  expect((await readResults(folder)).length).toBe(generator.opened.length - 1);
});

test('without a folder nothing is written', async () => {
  const { options } = createSetting();
  const { output: _output, ...inMemory } = options;
  expect(await evaluate(inMemory)).toHaveLength(4);
  await expect(readFile(join(folder, 'results.jsonl'))).rejects.toThrow(/ENOENT/);
});

test('the report counts by set and over all, and carries the digest', async () => {
  const results = await evaluate(createSetting().options);
  const report = reportOf(results, { digest: 'd'.repeat(64), settings: {} });
  expect(report.sets.map(({ name, questions: count, em }) => [name, count, em.mean])).toEqual([
    ['elsewhere', 2, 0.5],
    ['iberia', 2, 1],
  ]);
  expect(report.overall).toMatchObject({
    questions: 4,
    searches: 1,
    validShare: 1,
    answeredShare: 1,
    goldShownShare: 0.75,
  });
  expect(report.overall.em.mean).toBe(0.75);
  expect(report.averageEm).toBe(0.75);
  const table = markdownReport(report);
  expect(table).toMatch(/^\| overall \| 4 \| 0\.750 \| 0\.\d{3} to 1\.000 \|/m);
  expect(table).toMatch(/Settings d{16}, questions [0-9a-f]{16}\.$/m);
});

test('rag sees its passages in the prompt', async () => {
  const { options } = createSetting();
  const [first] = await evaluate({
    ...options,
    method: 'rag',
    questions: questions.slice(0, 1),
    settings: {},
  });
  expect(first).toMatchObject({ searches: 1, goldShown: true, validActions: 0 });
});
