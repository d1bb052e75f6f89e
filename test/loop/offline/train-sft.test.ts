import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config/index.js';
import { CancelledError } from '../../../src/errors.js';
import { openRun, trainSft } from '../../../src/loop/index.js';
import {
  openTrainer,
  type RunSettings,
  readMetrics,
  runSettings,
  type Trainer,
} from '../../../src/training/index.js';
import { compileEntry } from '../../support/compile-entry.js';
import type { BigramSpec } from '../../training/support/bigram-entry.js';
import { madeExamples } from '../../training/support/examples.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-sft-'));
const support = join(__dirname, '..', '..', 'training', 'support');
const entry = compileEntry(
  join(folder, 'entry'),
  ['bigram-model', 'bigram-entry'].map((name) => join(support, `${name}.ts`)),
);
afterAll(() => rmSync(folder, { recursive: true }));

const VOCAB = 7;
const examples = madeExamples(10, VOCAB);
const flags = { 'training.learningRate': 0.05, 'training.batchSequences': 4, 'training.epochs': 2 };

interface Run {
  readonly name: string;
  readonly settings?: Partial<RunSettings>;
  readonly flags?: Record<string, unknown>;
  readonly trouble?: string;
  readonly resume?: boolean;
  readonly stopAfter?: number;
  /** Examples that there are. */
  readonly count?: number;
  /** Hears what each step takes. */
  readonly onSequences?: (ids: readonly string[]) => void;
}

async function train({ name, trouble, resume = false, stopAfter, flags: more = {}, ...rest }: Run) {
  const settings = runSettings(loadConfig({ env: {}, flags: { ...flags, ...more } }).training, 'sft');
  const notes: string[] = [];
  const run = await openRun(join(folder, name), {
    identity: { learningRate: settings.policySchedule.peak },
    resume,
    onNote: (line) => notes.push(line),
  });
  const spec: BigramSpec = {
    vocabSize: VOCAB,
    critic: false,
    seed: 3,
    ...(trouble === undefined ? {} : { trouble: join(folder, trouble) }),
  };
  const trainer = await openTrainer({
    entry,
    spec,
    root: run.checkpoints,
    configDigest: run.configDigest,
    from: run.from,
    niceness: 0,
  });
  const stop = new AbortController();
  try {
    const outcome = await trainSft(
      run,
      told(trainer, rest.onSequences),
      settings,
      examples.slice(0, rest.count),
      {
        signal: stop.signal,
        onStep: ({ step }) => step === stopAfter && stop.abort(),
      },
    );
    return { ...outcome, notes, rows: await readMetrics(run.metrics) };
  } finally {
    await trainer.close();
    await run.release();
  }
}

/** The trainer, overheard. */
function told(trainer: Trainer, onSequences: Run['onSequences']): Trainer {
  if (onSequences === undefined) return trainer;
  return new Proxy(trainer, {
    get(target, key) {
      const value = Reflect.get(target, key, target);
      if (key === 'run')
        return (...[work, options]: Parameters<Trainer['run']>) => {
          onSequences(work.sequences.map(({ id }) => id));
          return target.run(work, options);
        };
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

test('the loss falls; checkpoints and figures are there', async () => {
  const {
    steps,
    rows,
    folder: last,
  } = await train({ name: 'plain', flags: { 'training.checkpointEvery': 2 } });
  expect(steps).toBe(6);
  expect(rows.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(rows[5]?.loss).toBeLessThan(rows[0]?.loss as number);
  expect(rows[0]).toMatchObject({ learningRate: 0.05, lossTokens: expect.any(Number) });
  expect(readdirSync(join(folder, 'plain', 'checkpoints')).sort()).toEqual([
    'step-00000000',
    'step-00000002',
    'step-00000004',
    'step-00000006',
  ]);
  expect(readdirSync(last).sort()).toEqual([
    'manifest.json',
    'model.safetensors',
    'optimizer.safetensors',
    'state.json',
  ]);
});

test.each([1, 2, 3, 4])('stopped after step %i and resumed, the run ends the same', async (stopAfter) => {
  const whole = await train({ name: `whole-${stopAfter}`, flags: { 'training.checkpointEvery': 2 } });
  const name = `stopped-${stopAfter}`;
  const stopped = train({ name, stopAfter, flags: { 'training.checkpointEvery': 2 } });
  await expect(stopped).rejects.toThrow(CancelledError);
  const resumed = await train({ name, resume: true, flags: { 'training.checkpointEvery': 2 } });
  expect(resumed.version).toBe(whole.version);
  expect(resumed.rows.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(resumed.rows.map(({ loss }) => loss)).toEqual(whole.rows.map(({ loss }) => loss));
});

test('a thread that dies does not change the outcome', async () => {
  const whole = await train({ name: 'alive', flags: { 'training.checkpointEvery': 3 } });
  writeFileSync(join(folder, 'trouble'), 'exit 4');
  const died = await train({ name: 'died', trouble: 'trouble', flags: { 'training.checkpointEvery': 3 } });
  expect(died.version).toBe(whole.version);
  expect(died.rows.map(({ loss }) => loss)).toEqual(whole.rows.map(({ loss }) => loss));
});

test('a run is not begun twice, nor resumed with other settings', async () => {
  const { version } = await train({ name: 'once' });
  await expect(train({ name: 'once' })).rejects.toThrow(/holds a run at step 6: add --resume/);
  const other = train({ name: 'once', resume: true, flags: { 'training.learningRate': 0.1 } });
  await expect(other).rejects.toThrow(/learningRate: 0.05, now 0.1/);
  expect((await train({ name: 'once', resume: true })).version).toBe(version);
});

test('a half-written checkpoint is reported and not used', async () => {
  const whole = await train({ name: 'damaged', flags: { 'training.checkpointEvery': 2 } });
  rmSync(join(folder, 'damaged', 'checkpoints', 'step-00000006', 'manifest.json'));
  const resumed = await train({ name: 'damaged', resume: true, flags: { 'training.checkpointEvery': 2 } });
  expect(resumed.notes.join()).toMatch(/ignored: .*step-00000006 is half-written/);
  expect(resumed.version).toBe(whole.version);
  expect(existsSync(join(folder, 'damaged', 'checkpoints', 'step-00000006', 'manifest.json'))).toBe(true);
});

test('a run whose checkpoints are all damaged is not begun anew over what it was', async () => {
  await train({ name: 'lost' });
  const root = join(folder, 'lost', 'checkpoints');
  for (const name of readdirSync(root)) rmSync(join(root, name, 'manifest.json'));
  const before = readFileSync(join(folder, 'lost', 'run.json'), 'utf8');
  for (const resume of [false, true])
    await expect(train({ name: 'lost', resume, flags: { 'training.learningRate': 0.1 } })).rejects.toThrow(
      /without a whole checkpoint .*restore one, or choose another folder/,
    );
  expect(readFileSync(join(folder, 'lost', 'run.json'), 'utf8')).toBe(before);
});

test('a run of another version is not taken for one with other settings', async () => {
  await train({ name: 'older' });
  const path = join(folder, 'older', 'run.json');
  const { identity, ...rest } = JSON.parse(readFileSync(path, 'utf8'));
  const rewrite = (settings: object) => writeFileSync(path, JSON.stringify({ ...rest, identity: settings }));
  rewrite({});
  const lacking = train({ name: 'older', resume: true });
  await expect(lacking).rejects.toThrow(/another version of searchloop, which did not note learningRate: /);
  rewrite({ ...identity, objective: { adaptiveKl: null } });
  const unknown = train({ name: 'older', resume: true });
  await expect(unknown).rejects.toThrow(/whose objective.adaptiveKl this one does not know/);
});

test('a run that goes on over another pass sees every example as often as one of two passes', async () => {
  const seen = new Map<string, number>();
  const pass = async (epochs: number, resume: boolean) => {
    const flags = { 'training.batchSequences': 3, 'training.epochs': epochs };
    await train({ name: 'passes', flags, resume, count: 7, onSequences: (ids) => ids.forEach(count) });
  };
  const count = (id: string): void => void seen.set(id, (seen.get(id) ?? 0) + 1);
  await pass(1, false);
  expect([...seen.values()]).toEqual(Array(7).fill(1));
  await pass(2, true);
  expect([...seen.values()]).toEqual(Array(7).fill(2));
});
