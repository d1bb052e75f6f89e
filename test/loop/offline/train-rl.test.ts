import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError, IntegrityError } from '../../../src/errors.js';
import { readWarmStart } from '../../../src/loop/index.js';
import { openModel, readAdapter } from '../../../src/model/index.js';
import { openDecoderWeights } from '../../../src/training/index.js';
import { compileEntry } from '../../support/compile-entry.js';
import { importTiny, tinyBestOfN, tinyRun } from '../support/tiny-rl-run.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-rl-'));
const home = join(folder, 'home');
beforeAll(() => importTiny(home, join(__dirname, '..', '..', 'fixtures')));
afterAll(() => rmSync(folder, { recursive: true }));
jest.setTimeout(900_000);

const run = (name: string, more: Partial<Parameters<typeof tinyRun>[0]> = {}) =>
  tinyRun({ home, output: join(folder, name), algorithm: 'grpo', ...more });

test('the reward rises; figures, checkpoints and the best one are kept', async () => {
  const { rows, step, version, adapter } = await run('grpo', {
    flags: { 'training.steps': 8, 'training.learningRate': 0.05 },
  });
  expect(rows).toHaveLength(8);
  const early = (rows[0]?.reward as number) + (rows[1]?.reward as number);
  expect((rows[6]?.reward as number) + (rows[7]?.reward as number)).toBeGreaterThan(early + 0.1);
  expect(rows[0]).toMatchObject({ kl: 0, rollouts: 8, quarantined: 0, staleRollouts: 0 });
  for (const row of rows) expect(Object.values(row).every(Number.isFinite)).toBe(true);
  for (const figure of [
    'entropy',
    'clipFraction',
    'approxKl',
    'gradientNorm',
    'sampledTokens',
    'searches',
    'validShare',
    'zeroVarianceShare',
    'importanceWeightMax',
    'rolloutSeconds',
  ])
    expect(rows[7]).toHaveProperty(figure, expect.any(Number));
  // Trainer and engine compute with the same float32 weights: at each token.
  expect(Math.abs((rows[0]?.importanceWeight as number) - 1)).toBeLessThan(1e-3);
  expect(rows[0]?.importanceWeightMax).toBeLessThan(1 + 2e-3);
  expect(step).toBe(2);
  expect(JSON.parse(readFileSync(join(folder, 'grpo', 'best.json'), 'utf8'))).toEqual({ step });
  expect(readdirSync(join(folder, 'grpo', 'checkpoints')).sort()).toEqual([
    'step-00000000',
    'step-00000002',
    'step-00000008',
  ]);
  const model = await openModel(home, 'tiny-llama');
  const source = model.openWeights();
  expect(readAdapter(adapter as string, openDecoderWeights(model, source).config)).toMatchObject({
    digest: version,
    rank: 4,
  });
  source.close();
});

test('dapo replaces groups of equal outcomes by further questions', async () => {
  const { rows } = await run('dapo', { algorithm: 'dapo', flags: { 'training.steps': 2 } });
  expect(rows).toHaveLength(2);
  expect(rows.every((row) => Object.values(row).every(Number.isFinite))).toBe(true);
  expect(rows[0]).not.toHaveProperty('kl');
});

test('a question that does not fit the window is told and left out, and the run is that without it', async () => {
  const flags = { 'training.steps': null, 'training.epochs': 1 };
  const long = {
    id: 'long',
    dataset: 'long',
    question: 'far '.repeat(1000),
    goldenAnswers: ['x'],
    supportingTitles: [],
  };
  const { last, notes, rows } = await run('long', { flags, more: [long] });
  expect(notes).toEqual([expect.stringMatching(/^left out: 1 of 6 questions .* long: .*length is 512 /)]);
  expect(rows).toHaveLength(3);
  expect((await run('without', { flags })).last).toBe(last);
});

describe('an engine that silently goes on with an old adapter', () => {
  const flags = { 'training.learningRate': 0.05, 'training.steps': 3, 'training.klPlace': 'none' };

  test('is told of; what it samples under a version that is gone is not trained on', async () => {
    // The second step's version is not kept beyond the third.
    const { rows, notes, last, version } = await run('stuck', { flags, stuckFrom: 3 });
    expect(rows.map(({ staleRollouts }) => staleRollouts)).toEqual([0, 0, 8]);
    expect(rows.map(({ updates }) => updates)).toEqual([1, 1, 0]);
    // The run gives the policy of its second step, and the third has not moved it.
    expect(last).toBe(version);
    expect(notes).toEqual([
      expect.stringMatching(/^step 3: 8 of 8 rollouts are of version \w{12}, .* given \w{12}; 8 are too old/),
    ]);
  });

  test('what it samples under a version that is still there is weighed against that one', async () => {
    const two = { ...flags, 'training.steps': 2 };
    const { rows, notes } = await run('lagging', { flags: two, stuckFrom: 2 });
    expect(rows.map(({ staleRollouts }) => staleRollouts)).toEqual([0, 0]);
    expect(rows[0]?.approxKl).toBe(0);
    expect(rows[1]?.approxKl).toBeGreaterThan(0);
    // The engine's log-probabilities are those of the version that sampled.
    expect(rows[1]?.importanceWeightMax).toBeLessThan(1 + 2e-3);
    expect(notes).toHaveLength(1);
    const strict = { ...two, 'training.maxStaleness': 0 };
    const { rows: dropped } = await run('strict', { flags: strict, stuckFrom: 2 });
    expect(dropped.map(({ staleRollouts }) => staleRollouts)).toEqual([0, 8]);
  });
});

test('best of n keeps good rollouts only; stopped and run again, the file is the same', async () => {
  const { folder: at, version } = await run('sampled', { flags: { 'training.steps': 1 } });
  const [whole, parts] = [join(folder, 'whole.jsonl'), join(folder, 'parts.jsonl')];
  const summary = await tinyBestOfN(home, { folder: at, version }, whole);
  const lines = await readWarmStart(whole);
  expect(summary).toEqual({ questions: 20, trajectories: lines.length });
  expect(lines.length).toBeGreaterThan(3);
  expect(new Set(lines.map(({ questionId }) => questionId)).size).toBe(lines.length);
  const stop = new AbortController();
  const stopped = tinyBestOfN(home, { folder: at, version }, parts, {
    signal: stop.signal,
    onProgress: () => stop.abort(),
  });
  await expect(stopped).rejects.toThrow(CancelledError);
  expect((await readWarmStart(parts)).length).toBeLessThan(lines.length + 1);
  await tinyBestOfN(home, { folder: at, version }, parts);
  const told = async (file: string) =>
    (await readWarmStart(file)).map(({ questionId, record }) => [questionId, record.tokenIds]);
  expect(await told(parts)).toEqual(await told(whole));
  const other = tinyBestOfN(home, { folder: at, version }, parts, { settingsDigest: 'e' });
  await expect(other).rejects.toThrow(IntegrityError);
  // Someone else's trajectories are not overwritten.
  rmSync(`${parts}.progress.json`);
  const before = readFileSync(parts, 'utf8');
  const anew = tinyBestOfN(home, { folder: at, version }, parts, { settingsDigest: 'e' });
  await expect(anew).rejects.toThrow(/holds trajectories that this run did not make/);
  expect(readFileSync(parts, 'utf8')).toBe(before);
});

test('the weight of the KL follows its target, and a run that goes on has it', async () => {
  const flags = { 'training.klTarget': 1e-6, 'training.klHorizon': 20, 'training.steps': 3 };
  const whole = await run('adaptive', { flags });
  const betas = whole.rows.map(({ klBeta }) => klBeta as number);
  // Nothing has moved at the first step, then the KL is far above the target.
  expect(betas[1]).toBeLessThan(betas[0] as number);
  expect(betas[2]).toBeGreaterThan(betas[1] as number);
  await expect(run('adaptive-stopped', { flags, stopAfter: 2 })).rejects.toThrow(CancelledError);
  const resumed = await run('adaptive-stopped', { flags, resume: true });
  expect(resumed.rows.map(({ klBeta }) => klBeta)).toEqual(betas);
});

test('stopped or killed at any moment and resumed, a run with a critic ends as the undisturbed one', async () => {
  const more = { algorithm: 'ppo' } as const;
  const whole = await run('whole', more);
  await expect(run('stopped', { ...more, stopAfter: 1 })).rejects.toThrow(CancelledError);
  const resumed = await run('stopped', { ...more, resume: true });
  expect(resumed.last).toBe(whole.last);
  expect(resumed.rows.map(({ reward, valueLoss }) => [reward, valueLoss])).toEqual(
    whole.rows.map(({ reward, valueLoss }) => [reward, valueLoss]),
  );

  const child = compileEntry(
    join(folder, 'child'),
    ['tiny-rl-run', 'tiny-rl-child'].map((name) => join(__dirname, '..', 'support', `${name}.ts`)),
  );
  const output = join(folder, 'killed');
  const start = () => spawn('node', [child, home, output, 'ppo'], { stdio: ['ignore', 'pipe', 'inherit'] });
  for (const step of [0, 1, 2]) {
    const process = start();
    while (!existsSync(join(output, 'checkpoints', `step-0000000${step}`))) await sleep(5);
    await sleep(180 * step);
    process.kill('SIGKILL');
    await once(process, 'exit');
  }
  const last = start();
  let text = '';
  last.stdout.on('data', (data) => (text += data));
  await once(last, 'exit');
  expect(text.trim()).toBe(whole.last);
});
