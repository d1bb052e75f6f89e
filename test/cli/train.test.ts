import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../src/cli/index.js';
import { isValidation } from '../../src/evaluation/index.js';
import { importModel } from '../../src/model/index.js';
import { madeExamples } from '../training/support/examples.js';
import { runBuilt, startPassageServer } from './support/built-cli.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-cli-train-'));
const home = join(folder, 'home');
const FIXTURES = join(__dirname, '..', 'fixtures');
beforeAll(() => importModel(join(FIXTURES, 'models', 'tiny-llama'), home, { id: 'tiny' }));
afterAll(() => rmSync(folder, { recursive: true }));
jest.setTimeout(600_000);

const data = join(folder, 'data.jsonl');
const ids = Array.from({ length: 4000 }, (_, i) => `n${i}`);
const [held, open] = [ids.filter(isValidation), ids.filter((id) => !isValidation(id))];
/** Trajectories, each of the question of that place, or of none. */
const trajectories = (questions: readonly (string | undefined)[]): string =>
  madeExamples(questions.length, 500)
    .map(({ id, tokenIds, lossMask }, i) =>
      JSON.stringify({
        questionId: questions[i],
        record: { id, tokenIds: [...tokenIds], lossMask: [...lossMask] },
      }),
    )
    .join('\n');
// Six of eight may be learnt from.
const wanted = [undefined, held[0], open[0], open[1], undefined, open[2], held[1], undefined];
writeFileSync(data, trajectories(wanted));

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process and catches what it prints. */
async function cli(...args: string[]): Promise<Outcome> {
  const printed = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    jest.spyOn(process[name], 'write').mockImplementation((text) => {
      printed[name] += String(text);
      return true;
    }),
  );
  const before = process.exitCode;
  try {
    const set = ['-s', `paths.home="${home}"`, '-s', 'model.policy=tiny', '-s', 'engine.precision=fp32'];
    return { code: await runCli([...args, ...set, '-s', 'training.threads=1']), ...printed };
  } finally {
    process.exitCode = before;
    for (const spy of spies) spy.mockRestore();
  }
}

const sizes = [
  '-s',
  'training.batchSequences=3',
  '-s',
  'training.rank=2',
  '-s',
  'training.checkpointEvery=1',
];

test('sft trains, plots, exports and goes on only where it may', async () => {
  const run = join(folder, 'run');
  const trained = await cli('train', 'sft', '--data', data, '--output', run, ...sizes);
  expect(trained).toMatchObject({ code: 0 });
  expect(trained.stderr).toContain(
    `left out: 2 of 8 trajectories in ${data} are of questions of the validation part, which is never trained on\n`,
  );
  expect(trained.stderr).toMatch(/step 1\/2 {2}loss \d.*tok\/s/);
  expect(trained.stdout).toMatch(/2 steps; version [0-9a-f]{12} of step 2/);
  expect(readdirSync(run)).toEqual(
    expect.arrayContaining(['adapter', 'checkpoints', 'metrics.jsonl', 'run.json']),
  );

  const again = await cli('train', 'sft', '--data', data, '--output', run, ...sizes);
  expect(again).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/holds a run at step 2: add --resume/),
  });
  const other = await cli('train', 'sft', '-d', data, '-o', run, '-r', ...sizes, '-s', 'training.rank=3');
  expect(other).toMatchObject({ code: 2, stderr: expect.stringMatching(/rank: 2, now 3/) });
  const longer = await cli('train', 'sft', '-d', data, '-o', run, '-r', ...sizes, '-s', 'training.epochs=2');
  expect(longer.stdout).toMatch(/4 steps; .* of step 4/);

  const picture = join(folder, 'curves.svg');
  expect(await cli('train', 'plot', run, '--output', picture)).toMatchObject({ code: 0 });
  expect(readFileSync(picture, 'utf8')).toMatch(/>loss</);
  const plot = (...flags: string[]) => cli('train', 'plot', run, '-o', join(folder, 'no.svg'), ...flags);
  expect(await plot('--figures', 'loss,rewrd')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/no run has a number of rewrd; there are: .*learningRate, logprob, loss,/),
  });
  expect(await plot('--smooth', '0')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/expected a whole number of at least 1/),
  });
  expect(existsSync(join(folder, 'no.svg'))).toBe(false);

  const adapter = join(folder, 'half');
  const exported = await cli(
    'models',
    'export',
    '-a',
    join(run, 'adapter'),
    '-o',
    adapter,
    '--base',
    'hub/tiny',
  );
  expect(exported).toMatchObject({ code: 0 });
  expect(JSON.parse(readFileSync(join(adapter, 'adapter_config.json'), 'utf8'))).toMatchObject({ r: 2 });
  const merged = join(folder, 'merged');
  expect(await cli('models', 'export', '--merged', '-a', adapter, '-o', merged)).toMatchObject({ code: 0 });
  expect(existsSync(join(merged, 'tiny.gguf')) && existsSync(join(merged, 'config.json'))).toBe(true);
});

test('whole weights are trained and exported', async () => {
  const run = join(folder, 'whole');
  const whole = ['-s', 'training.trained=whole', '-s', 'training.steps=1'];
  const trained = await cli('train', 'sft', '-d', data, '-o', run, ...sizes, ...whole, '--json');
  expect(trained).toMatchObject({ code: 0 });
  const checkpoint = (JSON.parse(trained.stdout) as { folder: string }).folder;
  const output = join(folder, 'whole-out');
  expect(await cli('models', 'export', '-a', checkpoint, '-o', output)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/holds whole weights and no adapter: add --merged/),
  });
  const exported = await cli('models', 'export', '--merged', '-a', checkpoint, '-o', output);
  expect(exported).toMatchObject({ code: 0 });
  expect(readdirSync(output)).toEqual(expect.arrayContaining(['config.json', 'tiny.gguf', 'tokenizer.json']));
});

test('--resume where no run is begins one and says so; Ctrl-C then says how to go on', async () => {
  const run = join(folder, 'stopped');
  const line = ['train', 'sft', '-d', data, '-o', run, ...sizes];
  const settings = {
    'paths.home': home,
    'model.policy': 'tiny',
    'engine.precision': 'fp32',
    'training.threads': '1',
    'training.epochs': '10000',
  };
  let sent = false;
  const stopped = await runBuilt([...line, '--resume'], settings, (child, { stderr }) => {
    if (!sent && stderr.includes('step 2/')) sent = child.kill('SIGINT');
  });
  expect(stopped).toMatchObject({ code: 130, stderr: expect.stringContaining(`no run in ${run} yet`) });
  expect(stopped.stderr).toMatch(/\ninterrupted; run the same command again to go on\n$/);
  const again = await runBuilt(line, settings);
  expect(again).toMatchObject({ code: 2, stderr: expect.stringMatching(/add --resume/) });
});

test('SIGTERM is heard while the validation part is answered', async () => {
  const passages = await startPassageServer({ id: 'p', title: 'One', text: 'A passage.' });
  const questions = join(folder, 'questions.jsonl');
  const lines = ids.map((id) => JSON.stringify({ id, question: 'What is it?', golden_answers: ['it'] }));
  writeFileSync(questions, lines.join('\n'));
  const run = join(folder, 'ended');
  const settings = {
    'paths.home': home,
    'model.policy': 'tiny',
    'engine.precision': 'fp32',
    'engine.maxSequenceTokens': '512',
    'retrieval.kind': 'remote',
    'retrieval.remoteUrl': passages.url,
    'training.threads': '1',
    'training.rank': '2',
    'training.validateEvery': '1',
    'training.validationQuestions': '4000',
  };
  try {
    let sent = false;
    const ended = await runBuilt(
      ['train', 'grpo', '-d', questions, '-o', run],
      settings,
      (child, printed) => {
        if (!sent && printed.stderr.includes('step 0 answers')) sent = child.kill('SIGTERM');
      },
    );
    expect(ended).toMatchObject({ code: 130 });
    expect(ended.stderr).toContain(`step 0 answers ${held.length} questions of the validation part`);
    expect(readdirSync(run)).not.toContain('validation.jsonl');
  } finally {
    await passages.close();
  }
});

test('wrong lines end with usage errors', async () => {
  expect(await cli('models', 'export', '-o', folder)).toMatchObject({ code: 2 });
  expect(await cli('train', 'sft', '-d', data)).toMatchObject({ code: 2 });
  const whole = await cli(
    'train',
    'grpo',
    '-d',
    data,
    '-o',
    join(folder, 'x'),
    '-s',
    'training.trained=whole',
  );
  expect(whole).toMatchObject({ code: 2, stderr: expect.stringMatching(/training.trained=lora/) });
  const best = ['train', 'best-of-n', '-d', data, '-o', join(folder, 'best.jsonl')];
  expect(await cli(...best)).toMatchObject({ code: 2, stderr: expect.stringMatching(/--adapter/) });
  expect(await cli(...best, '-a', folder, '--min-reward', 'good')).toMatchObject({ code: 2 });
  expect(await cli(...best, '-a', folder, '--count', '-5')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/expected a whole number of at least 1/),
  });
  const heldOnly = join(folder, 'held.jsonl');
  writeFileSync(heldOnly, trajectories([held[0], held[1]]));
  expect(await cli('train', 'sft', '-d', heldOnly, '-o', join(folder, 'y'))).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/2 of 2 trajectories .* the validation part, which is never trained on/),
  });
  expect(await cli('train', 'plot', folder, '-o', join(folder, 'none.svg'))).toMatchObject({ code: 1 });
});
