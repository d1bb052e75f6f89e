// The real rollout runner over a scripted generator and passages in memory.

import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { configSchema } from '../../src/config/index.js';
import type { EvaluationOptions } from '../../src/evaluation/evaluate.js';
import { readSettings } from '../../src/evaluation/folder.js';
import {
  chosenTranscripts,
  evaluate,
  markdownReport,
  markdownTranscripts,
  type Question,
  readResults,
  readTranscripts,
  reportOf,
  settingsDigest,
} from '../../src/evaluation/index.js';
import type { StoredTranscript } from '../../src/evaluation/transcript.js';
import {
  createRolloutRunner,
  inlineEncoding,
  loadPrompts,
  type RolloutRunner,
} from '../../src/rollout/index.js';
import { createMemoryRetriever } from '../support/memory-retriever.js';
import { createPieceTokenizer } from '../support/piece-tokenizer.js';
import { PASSAGES } from '../support/rollout-kit.js';
import { createScriptedGenerator } from '../support/scripted-generator.js';

const CAPITALS = { Portugal: 'Lisbon', Spain: 'Madrid', Norway: 'Oslo', France: 'Paris' };

const questions: Question[] = Object.entries(CAPITALS).map(([country, capital], i) => ({
  id: `q${i}`,
  dataset: i < 2 ? 'iberia' : 'elsewhere',
  question: `What is the capital of ${country}?`,
  goldenAnswers: [capital],
  supportingTitles: [],
}));

let folder: string;
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'evaluate-')), 'run');
});
afterEach(() => rm(join(folder, '..'), { recursive: true, force: true }));

/** Searches with the question, then answers with the first capital that the passages name. */
function createSetting(beforeToken?: () => void) {
  const tokenizer = createPieceTokenizer();
  const generator = createScriptedGenerator({
    tokenizer,
    policy: (turn, sequence) => {
      const text = tokenizer.decode(sequence);
      const country = /capital of (\w+)\?/.exec(text)?.[1] ?? '';
      if (turn === 0)
        return tokenizer.encodePlain(`<think>look</think><search>capital of ${country}</search>`);
      const capital = new RegExp(`\\) (\\w+) is the capital of ${country}`).exec(text)?.[1] ?? 'unknown';
      return tokenizer.encodePlain(`<think>so</think><answer>${capital}</answer>`);
    },
    eosTokenIds: [tokenizer.endId],
    ...(beforeToken === undefined ? {} : { beforeToken }),
  });
  const { rollout: config } = configSchema.parse({});
  const runner = createRolloutRunner({
    generator,
    retriever: createMemoryRetriever({ passages: PASSAGES }),
    tokenizer,
    encoding: inlineEncoding(tokenizer),
    config,
    prompts: loadPrompts(config),
  });
  const options: EvaluationOptions = {
    runner,
    tokenizer,
    method: 'search-r1',
    questions,
    concurrency: 3,
    settings: { method: 'search-r1' },
    output: folder,
  };
  return { generator, options };
}

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

/** Hears seeds and temperatures of what is asked, by question and in order. */
function listening(inner: RolloutRunner) {
  const asked: { country: string; seed: number | undefined; temperature: number | undefined }[] = [];
  const runner: RolloutRunner = {
    run(request) {
      const country = /of (\w+)\?/.exec(JSON.stringify(request.messages))?.[1] as string;
      asked.push({ country, seed: request.seed, temperature: request.sampling?.temperature });
      return inner.run(request);
    },
  };
  return { asked, runner };
}

test('samples are numbered, seeded by question and number, and kept one by one; more may be asked for', async () => {
  const { options } = createSetting();
  const sampled = { ...options, temperature: 1, seed: 7 };
  const first = listening(options.runner as RolloutRunner);
  const results = await evaluate({ ...sampled, runner: first.runner, samples: 2 });
  expect(results.map(({ id, sample }) => [id, sample])).toEqual(
    questions.flatMap(({ id }) => [
      [id, 0],
      [id, 1],
    ]),
  );
  expect(new Set(first.asked.map(({ seed }) => seed)).size).toBe(8);
  expect(new Set(first.asked.map(({ temperature }) => temperature))).toEqual(new Set([1]));
  expect(await readResults(folder)).toHaveLength(8);
  const stored = await readTranscripts(folder);
  expect(stored.map(({ id, sample }) => `${id} ${sample}`).sort()).toEqual(
    results.map(({ id, sample }) => `${id} ${sample}`).sort(),
  );
  expect(stored.every(({ stop }) => stop === 'answer')).toBe(true);
  expect(markdownTranscripts(stored)).toMatch(/^iberia, q0, sample 1; gold: Lisbon;/m);

  const second = listening(options.runner as RolloutRunner);
  const more = await evaluate({ ...sampled, runner: second.runner, samples: 3 });
  expect(more.filter(({ sample }) => sample !== 2)).toEqual(results);
  expect(second.asked.map(({ country }) => country).sort()).toEqual(Object.keys(CAPITALS).sort());

  // Alone and in another order, a sample has the same seed.
  const third = listening(options.runner as RolloutRunner);
  const { output: _output, ...inMemory } = sampled;
  await evaluate({ ...inMemory, runner: third.runner, questions: [...questions].reverse(), samples: 3 });
  const seedsOf = (asked: typeof first.asked) =>
    asked.map(({ country, seed }) => `${country} ${seed}`).sort();
  expect(seedsOf(third.asked)).toEqual(seedsOf([...first.asked, ...second.asked]));
  const other = listening(options.runner as RolloutRunner);
  await evaluate({ ...inMemory, seed: 8, runner: other.runner, samples: 1 });
  expect(other.asked.filter(({ seed }) => third.asked.some((one) => one.seed === seed))).toEqual([]);
});

test('a sample keeps its runner when more samples or other questions are asked for', async () => {
  const { options } = createSetting();
  const { output: _output, ...inMemory } = options;
  const placesOf = async (asked: readonly Question[], samples: number) => {
    const places = new Map<string, number>();
    const runners = [0, 1, 2].map(
      (slot): RolloutRunner => ({
        run(request) {
          places.set(`${request.seed}`, slot);
          return (options.runner as RolloutRunner).run(request);
        },
      }),
    );
    await evaluate({ ...inMemory, temperature: 1, runner: runners, questions: asked, samples });
    return places;
  };
  const few = await placesOf(questions.slice(2), 2);
  const many = await placesOf(questions, 4);
  expect(few.size).toBe(4);
  expect([...few].filter(([seed, slot]) => many.get(seed) !== slot)).toEqual([]);
  expect(new Set(many.values()).size).toBe(3);
});

test('several greedy samples, or none, are refused', async () => {
  const { options } = createSetting();
  await expect(evaluate({ ...options, samples: 2 })).rejects.toThrow(/temperature above 0/);
  await expect(evaluate({ ...options, samples: 0, temperature: 1 })).rejects.toThrow(/one sample or more/);
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
