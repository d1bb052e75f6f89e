// A step of LoRA training beside PyTorch with PEFT: the same values, adapter, text and threads, in interleaved rounds,
// each measurement in a process of its own.
//
//   npm run bench -- training [--shapes 512,1024,2048,4096,8x512] [--rounds 3] [--threads N] [--python PATH] [--resume]
//
// A shape is the length of the one sequence of a step, or NxLENGTH. The goals are for one sequence: what a step over many
// gains beyond that (several in one run on both sides, lanes on ours) is told beside.
//
// About fifteen minutes on two cores once PyTorch is installed. Everything else that runs meanwhile is in the figures.
// Each measurement is kept in bench/results/training; --resume takes those that a stopped bench already has.

import { mkdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { homeFolder, loadConfig, packageRoot } from '#searchloop/config/index.js';
import { ensureModel } from '#searchloop/model/index.js';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import { canonicalJson, sha256Hex } from '#searchloop/util/digest.js';
import { type Figure, median, note, printReport, resultsFolder } from './report.js';
import { installPyTorch, PEFT, PYTORCH } from './rivals/pytorch.js';
import { runJob, type TrainingJob, type TrainingSample } from './training/job.js';
import { textsOf, writeSetup } from './training/shared-setup.js';

/** Of ours over PyTorch's. */
const GOALS: Readonly<Record<number, { readonly speed: number; readonly memory: number }>> = {
  512: { speed: 1.5, memory: 1.0 },
  1024: { speed: 1.3, memory: 0.7 },
  2048: { speed: 1.0, memory: 0.7 },
  4096: { speed: 1.0, memory: 0.7 },
};
/** Steps that are timed, after one to warm up. */
const TIMED_STEPS: Readonly<Record<string, number>> = { 512: 4, 1024: 3, 2048: 2 };
/** Both sides compute in float32, in other orders; an adapter that moves makes it a little more. */
const LARGEST_LOSS_DIFFERENCE = 1e-3;

const SIDES = ['ours', 'pytorch'] as const;
type Side = (typeof SIDES)[number];
type Samples = Record<Side, TrainingSample[]>;

const here = dirname(fileURLToPath(import.meta.url));
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      shapes: { type: 'string', default: `${Object.keys(GOALS).join(',')},8x512` },
      rounds: { type: 'string', default: '3' },
      threads: { type: 'string', default: String(availableParallelism()) },
      python: { type: 'string' },
      resume: { type: 'boolean', default: false },
    },
  });
  const config = loadConfig();
  const home = homeFolder(config);
  const cache = join(home, 'bench');
  const model = await ensureModel('smollm2-135m-instruct', home);
  const setup = await writeSetup(model, cache);
  const commands: Commands = {
    ours: [process.execPath, join(here, 'training', 'ours.js')],
    pytorch: [
      values.python ?? installPyTorch(cache),
      join(packageRoot, 'bench', 'rivals', 'pytorch_training.py'),
    ],
  };
  const figures: Figure[] = [];
  for (const shape of values.shapes.split(',').map(shapeOf)) {
    const job: TrainingJob = {
      ...setup,
      texts: await textsOf(model, shape.sequences, shape.length),
      microBatchTokens: config.training.microBatchTokens,
      home,
      modelId: model.record.id,
      threads: Number(values.threads),
      steps: 1 + (TIMED_STEPS[shape.name] ?? 1),
      learningRate: 1e-4,
      maxGradientNorm: 1,
    };
    const rounds = Number(values.rounds);
    figures.push(...figuresOf(shape, await measure(commands, job, { shape, rounds, resume: values.resume })));
  }
  printReport('training', figures, [
    `SmolLM2-135M, dequantised q8 values in float32, LoRA of rank 16 on all linear layers, loss on a third of the tokens, clipping and AdamW in the step; ${values.threads} threads, denormals flushed on both sides, medians over the steps of ${values.rounds} rounds`,
    `ours: the trainer as it is configured by default; PyTorch ${PYTORCH} with PEFT ${PEFT}, scaled dot-product attention, only learnt positions through the output layer`,
  ]);
  return 0;
}

interface Shape {
  readonly name: string;
  readonly sequences: number;
  readonly length: number;
}

function shapeOf(name: string): Shape {
  const found = /^(?:(\d+)x)?(\d+)$/.exec(name);
  if (found === null) throw new Error(`expected a length or NxLENGTH, got "${name}"`);
  return { name, sequences: Number(found[1] ?? 1), length: Number(found[2]) };
}

type Commands = Readonly<Record<Side, readonly [string, string]>>;

async function measure(
  commands: Commands,
  job: TrainingJob,
  { shape, rounds, resume }: { readonly shape: Shape; readonly rounds: number; readonly resume: boolean },
): Promise<Samples> {
  const settings = sha256Hex(canonicalJson(job));
  const file = join(resultsFolder('training'), `${shape.name}.json`);
  mkdirSync(dirname(file), { recursive: true });
  const samples = (resume ? keptSamples(file, settings) : null) ?? { ours: [], pytorch: [] };
  for (let round = 0; round < rounds; round++)
    // Who comes first changes: a machine that grows slower slows both.
    for (const side of round % 2 === 0 ? SIDES : SIDES.toReversed()) {
      if (samples[side].length > round) continue;
      const [command, script] = commands[side];
      const sample = await runJob(command, [script], job);
      samples[side].push(sample);
      await writeFileAtomic(file, JSON.stringify({ settings, samples }));
      note(
        `${shape.name} tokens, round ${round + 1}, ${side}: ${speedOf([sample], shape).toFixed(0)} tok/s, ${sample.peakMebibytes.toFixed(0)} MiB, loss ${sample.losses.map((loss) => loss.toFixed(5)).join(' ')}`,
      );
    }
  return { ours: samples.ours.slice(0, rounds), pytorch: samples.pytorch.slice(0, rounds) };
}

function keptSamples(file: string, settings: string): Samples | null {
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as { settings: string; samples: Samples };
    return kept.settings === settings ? kept.samples : null;
  } catch {
    return null;
  }
}

const speedOf = (samples: readonly TrainingSample[], { sequences, length }: Shape): number =>
  (sequences * length) / median(samples.flatMap(({ seconds }) => seconds.slice(1)));

function figuresOf(shape: Shape, { ours, pytorch }: Samples): Figure[] {
  const [speed, theirSpeed] = [speedOf(ours, shape), speedOf(pytorch, shape)];
  const peak = (samples: readonly TrainingSample[]) =>
    median(samples.map(({ peakMebibytes }) => peakMebibytes));
  const { losses: theirs } = pytorch[0] as TrainingSample;
  const differences = [...ours, ...pytorch].flatMap(({ losses }) =>
    losses.map((loss, step) => Math.abs(loss / (theirs[step] as number) - 1)),
  );
  const goal = shape.sequences === 1 ? GOALS[shape.length] : undefined;
  const figure = (name: string, value: number, unit: string, of: Figure['goal'] = null): Figure => ({
    name: `${shape.name} tokens: ${name}`,
    value,
    unit,
    goal: of,
  });
  return [
    figure('ours', speed, 'tok/s'),
    figure('PyTorch', theirSpeed, 'tok/s'),
    figure('ours over PyTorch', speed / theirSpeed, 'x', goal === undefined ? null : { least: goal.speed }),
    figure('peak memory, ours', peak(ours), 'MiB'),
    figure('peak memory, PyTorch', peak(pytorch), 'MiB'),
    figure(
      'memory over PyTorch',
      peak(ours) / peak(pytorch),
      'x',
      goal === undefined ? null : { most: goal.memory },
    ),
    figure('largest difference of losses', Math.max(...differences), 'of the loss', {
      most: LARGEST_LOSS_DIFFERENCE,
    }),
  ];
}
