import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError } from '../../../src/errors.js';
import { openModel, readAdapter } from '../../../src/model/index.js';
import { openDecoderWeights } from '../../../src/training/index.js';
import { compileEntry } from '../../support/compile-entry.js';
import { importTiny, tinyRun } from '../support/tiny-rl-run.js';

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
  // Trainer and engine compute with the same float32 weights.
  expect(Math.abs((rows[0]?.importanceWeight as number) - 1)).toBeLessThan(1e-3);
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
