// The whole command over a tiny model and the real engine; no index, so methods without a search.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../src/cli/index.js';
import { isValidation } from '../../src/evaluation/index.js';
import { importModel } from '../../src/model/index.js';
import { runBuilt, startPassageServer } from './support/built-cli.js';

const models = join(__dirname, '..', 'fixtures', 'models');

let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'evaluate-'));
  await importModel(join(models, 'tiny-llama'), home);
  const questions = ['a', 'b', 'c'].map((name) => ({
    id: `q-${name}`,
    dataset: name === 'c' ? 'two' : 'one',
    question: `What is ${name}?`,
    golden_answers: [name],
  }));
  writeFileSync(join(home, 'questions.jsonl'), questions.map((item) => JSON.stringify(item)).join('\n'));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));
afterEach(() => jest.restoreAllMocks());

async function run(...args: string[]) {
  const [out, err]: string[][] = [[], []];
  jest.spyOn(process.stdout, 'write').mockImplementation((text) => (out as string[]).push(String(text)) > 0);
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => (err as string[]).push(String(text)) > 0);
  const isGiven = (key: string): boolean => args.some((arg) => arg.startsWith(`${key}=`));
  const settings = Object.entries(base()).flatMap(([key, value]) => (isGiven(key) ? [] : `${key}=${value}`));
  const code = await runCli(['evaluate', ...args, ...settings.flatMap((item) => ['--set', item])]);
  jest.restoreAllMocks();
  return { code, out: (out as string[]).join(''), err: (err as string[]).join('') };
}

const measured = (output: string, ...more: string[]) =>
  run(
    '--data',
    join(home, 'questions.jsonl'),
    '--split',
    'all',
    '-m',
    'direct',
    '--turn-tokens',
    '6',
    '-o',
    output,
    ...more,
  );

test('measures, writes its folder, answers nothing twice, and compares', async () => {
  const output = join(home, 'run');
  const first = await measured(output);
  expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/\| overall \| 3 \| 0\.000 \|/) });
  const lines = readFileSync(join(output, 'results.jsonl'), 'utf8');
  expect(lines.trim().split('\n')).toHaveLength(3);
  const report = JSON.parse(readFileSync(join(output, 'report.json'), 'utf8'));
  expect(
    report.sets.map(({ name, questions }: { name: string; questions: number }) => [name, questions]),
  ).toEqual([
    ['one', 2],
    ['two', 1],
  ]);
  expect(report.settings).toMatchObject({ method: 'direct', model: 'tiny-llama', adapter: null });
  expect(readFileSync(join(output, 'report.md'), 'utf8').trim()).toBe(first.out.trim());

  const again = await measured(output, '--json');
  expect(JSON.parse(again.out)).toEqual(report);
  expect(readFileSync(join(output, 'results.jsonl'), 'utf8')).toBe(lines);

  for (const flags of [
    ['--top-k', '5'],
    ['--set', 'engine.maxSequenceTokens=250'],
  ]) {
    const other = await measured(output, ...flags);
    expect(other).toMatchObject({ code: 1, err: expect.stringMatching(/holds results of other settings/) });
  }

  const compared = await run('compare', output, output, '--json');
  expect(JSON.parse(compared.out).overall).toMatchObject({ questions: 3, difference: { mean: 0 } });
  const transcripts = await run('transcripts', output, '--count', '2');
  expect(transcripts.out.match(/^### What is [abc]\?$/gm)).toHaveLength(2);
});

test('an adapter is named by its version in the settings', async () => {
  const adapter = join(__dirname, '..', 'fixtures', 'lora', 'tiny-llama', 'policy');
  const { code, out } = await measured(join(home, 'adapted'), '--adapter', adapter, '--limit', '1', '--json');
  expect(code).toBe(0);
  const { settings, overall } = JSON.parse(out);
  expect(settings.adapter).toMatch(/^[0-9a-f]{64}$/);
  expect(overall.questions).toBe(1);
});

const base = () => ({
  'paths.home': JSON.stringify(home),
  'model.policy': 'tiny-llama',
  'engine.precision': 'fp32',
  'engine.maxSequenceTokens': '256',
});

/** Of each sample what the policy did, and not how long it took. */
const answersIn = (folder: string) =>
  readFileSync(join(folder, 'results.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line): string => {
      const { seconds: _seconds, ...rest } = JSON.parse(line);
      return JSON.stringify(rest);
    })
    .sort();
const textsIn = (folder: string) =>
  readFileSync(join(folder, 'transcripts.jsonl'), 'utf8').trim().split('\n').sort();

test('samples: pass@k, maj@k, and a run that was stopped goes on bit for bit', async () => {
  let onQuery = (): Promise<void> | undefined => undefined;
  const passages = await startPassageServer({ id: 'p', title: 'letters', text: 'a is the first' }, () =>
    onQuery(),
  );
  const flags = (output: string, samples: number) => [
    ...[
      '--data',
      join(home, 'questions.jsonl'),
      '--split',
      'all',
      '-m',
      'rag',
      '--turn-tokens',
      '6',
      '-o',
      output,
    ],
    ...['--concurrency', '2', '--samples', String(samples), '--retrieval', 'remote'],
    ...['--set', `retrieval.remoteUrl=${passages.url}`],
  ];
  const sampled = (output: string, samples: number, ...more: string[]) =>
    run(...flags(output, samples), ...more);
  try {
    const whole = join(home, 'sampled');
    const first = await sampled(whole, 9);
    expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/^\| overall \| 3 \|/m) });
    expect(first.out).toMatch(/^\| overall \| 9 \| \d\.\d{3} \| .* \| \d\.\d{3} \|/m);
    expect(new Set(textsIn(whole)).size).toBe(27);
    const report = JSON.parse(readFileSync(join(whole, 'report.json'), 'utf8'));
    expect(report.settings.sampling).toMatchObject({ temperature: 1, seed: 0, slots: 2 });
    expect(report.sampled[2]).toMatchObject({ name: 'overall', questions: 3, samples: 9 });
    expect(report.sampled[2].atK.map(({ k }: { k: number }) => k)).toEqual([1, 2, 4, 8, 9]);

    // It is asked for fewer samples first, and from the eighth question on nothing is found any more, until the process is gone.
    const stopped = join(home, 'stopped');
    let queries = 0;
    const outcome = await runBuilt(['evaluate', ...flags(stopped, 5)], base(), (child) => {
      onQuery = () => {
        queries += 1;
        if (queries < 8) return undefined;
        // Once: a second one would end it at once.
        if (queries === 8) child.kill('SIGINT');
        return new Promise(() => {});
      };
    });
    onQuery = () => undefined;
    expect(outcome).toMatchObject({
      code: 130,
      stderr: expect.stringMatching(/run the same command again to go on/),
    });
    expect(answersIn(stopped).length).toBeGreaterThan(0);
    expect(answersIn(stopped).length).toBeLessThan(9);
    expect((await sampled(stopped, 9)).code).toBe(0);
    expect(answersIn(stopped)).toEqual(answersIn(whole));
    expect(textsIn(stopped)).toEqual(textsIn(whole));

    const compared = await run('compare', whole, stopped, '--json');
    const { overall } = JSON.parse(compared.out);
    expect(overall).toMatchObject({ questions: 3, difference: { mean: 0 }, mcnemar: null });
  } finally {
    await passages.close();
  }
}, 180_000);

test('what is left out is said', async () => {
  const ids = Array.from({ length: 100 }, (_, i) => `n${i}`);
  const chosen = [
    ...ids.filter(isValidation).slice(0, 1),
    ...ids.filter((id) => !isValidation(id)).slice(0, 3),
  ];
  const data = join(home, 'parts.jsonl');
  const lines = chosen.map((id) => JSON.stringify({ id, question: `What is ${id}?`, golden_answers: [id] }));
  writeFileSync(data, lines.join('\n'));
  const part = await run('--data', data, '-m', 'direct', '--turn-tokens', '2');
  expect(part).toMatchObject({ code: 0, out: expect.stringMatching(/\| overall \| 1 \|/) });
  expect(part.err).toContain(`1 of 4 questions in ${data}: the validation part; --split all takes all\n`);
  const none = await run('--data', data, '--sets', 'other');
  expect(none).toMatchObject({
    code: 1,
    err: expect.stringContaining(
      `0 of 4 questions in ${data}: the validation part, --sets other; --split all`,
    ),
  });
});

test.each([
  ['no question file', ['-m', 'direct'], 2, /give --data FILE or set evaluation\.data/],
  ['an unknown method', ['-m', 'guess'], 2, /expected one of search-r1/],
  ['a limit that is none', ['--limit', '-5'], 2, /expected a whole number of at least 1/],
  ['no number at all', ['--concurrency', ''], 2, /expected a whole number of at least 1/],
  ['an unknown part', ['--split', 'test'], 2, /expected one of validation, training, all/],
  ['a file that is not there', ['--data', 'none.jsonl'], 1, /no question file at none\.jsonl/],
  ['no sample at all', ['--samples', '0'], 2, /expected a whole number of at least 1/],
  ['a temperature of greedy answers', ['--temperature', '1'], 2, /without --samples answers are greedy/],
  ['greedy samples', ['--samples', '4', '-t', '0'], 2, /greedy answers to a question are all the same/],
  ['a temperature that is none', ['--samples', '4', '-t', '-1'], 2, /expected a number from 0 to 2/],
  ['nothing to compare', ['compare', 'x', 'y'], 1, /no results of an evaluation in x/],
])('%s ends in a line that says why, and an exit code', async (_name, args, code, message) => {
  expect(await run(...args)).toMatchObject({ code, err: expect.stringMatching(message) });
});
