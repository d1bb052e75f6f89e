// The real policy over a real corpus as a server's place: a warm start made of a tenth of what the adapter that comes with
// the project was made of, questions that users ask, and others that the gate judges by.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '#searchloop/config/index.js';
import { type Question, readQuestions, sampleOrder, selectPart } from '#searchloop/evaluation/index.js';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import { openKeys, questionLine, type ServedPlace, writeSettings } from './served-place.js';

export interface RealPlace extends ServedPlace<Question> {
  readonly data: string;
  readonly questionFile: string;
  /** PEFT folder of the policy that the loop begins with. */
  readonly start: string;
}

export interface RealPlaceOptions {
  readonly folder: string;
  /** Questions with gold answers, JSONL. */
  readonly questionFile: string;
  /** Folder of an index. */
  readonly index: string;
}

const WARM_START_TRAJECTORIES = 90;
/** Of all cross-entropy. */
const FOCAL_GAMMA = 1;
/** Of the training part: working set and one confirmation. */
const GATE_QUESTIONS = 600;

const ROLLOUT = {
  'retrieval.kind': 'hybrid',
  'retrieval.timeoutMs': 60_000,
  'rollout.turnTokens': 128,
  'rollout.passageTokens': 128,
  'rollout.observationTokens': 400,
  'rollout.actionBudget': 3,
} as const;

export async function openRealPlace({ folder, questionFile, index }: RealPlaceOptions): Promise<RealPlace> {
  const data = join(folder, 'data');
  await mkdir(data, { recursive: true });
  const rollout = { ...ROLLOUT, 'retrieval.index': index };
  // By a hash of its own, so that the probe's order says nothing of it; none of them is asked or trained on.
  const training = sampleOrder(selectPart(await readQuestions(questionFile), 'training'));
  const gateFile = join(folder, 'gate.jsonl');
  await writeFileAtomic(gateFile, training.slice(0, GATE_QUESTIONS).map(questionLine).join(''));
  const asked = training.slice(GATE_QUESTIONS);
  const start = await warmStart(folder, asked, index);
  const settingsFile = join(folder, 'settings.json');
  await writeSettings(settingsFile, {
    ...rollout,
    ...LEARNING,
    'paths.data': data,
    'server.port': 0,
    'evaluation.concurrency': 16,
    'model.adapters': { start },
    'model.liveAdapter': 'start',
    'loop.gateData': gateFile,
  });
  return { folder, data, settingsFile, asked, keys: await openKeys(data), questionFile, start };
}

const LEARNING = {
  // Without demonstrations a policy had unlearned to search after five steps at this rate: an update was of some three groups that differ.
  'training.learningRate': 3e-4,
  'training.warmupShare': 0.005,
  // Most groups of a weak policy are all wrong, and equal groups teach nothing: large ones, and words in common count.
  'training.rewardRule': 'f1',
  'training.batchSequences': 40,
  'training.miniBatchSequences': 40,
  'training.groupSize': 8,
  // A pass over what users have labelled takes some twelve steps; of three such questions the rules answer one.
  'loop.demonstrations': 32,
  'training.focalGamma': FOCAL_GAMMA,
  'loop.enabled': true,
  'loop.gateEvery': 8,
  'loop.maxKl': 0.5,
  'loop.minQuestions': 64,
  'loop.keepVersions': 1000,
} as const;

/** Trajectories by rule, then supervised training on them; both go on where they were stopped. */
async function warmStart(folder: string, asked: readonly Question[], index: string): Promise<string> {
  const [lines, run] = [join(folder, 'warm-start.jsonl'), join(folder, 'sft')];
  const questions = join(folder, 'asked.jsonl');
  const adapter = join(run, 'adapter');
  if (existsSync(adapter)) return adapter;
  await writeFileAtomic(questions, asked.map(questionLine).join(''));
  const where = ['--data', questions, '--index', index, '--retrieval', ROLLOUT['retrieval.kind']];
  // Sizes by its flags: without them it takes its own, whatever the settings say.
  const sizes = [
    ['--passage-tokens', ROLLOUT['rollout.passageTokens']],
    ['--observation-tokens', ROLLOUT['rollout.observationTokens']],
    ['--budget', ROLLOUT['rollout.actionBudget']],
    ['-n', WARM_START_TRAJECTORIES],
  ].flat();
  const patience = sets({ 'retrieval.timeoutMs': ROLLOUT['retrieval.timeoutMs'] });
  await command(['train', 'warm-start', ...where, ...sizes.map(String), ...patience, '-o', lines]);
  const training = {
    'training.learningRate': 8e-4,
    'training.focalGamma': FOCAL_GAMMA,
    'training.batchSequences': 8,
    'training.miniBatchSequences': 8,
    'training.epochs': 2,
    'training.schedule': 'cosine',
    'training.niceness': 0,
  };
  const resume = existsSync(run) ? ['--resume'] : [];
  await command(['train', 'sft', '--data', lines, '-o', run, ...resume, ...sets(training)]);
  return adapter;
}

export const sets = (settings: Readonly<Record<string, unknown>>): string[] =>
  Object.entries(settings).flatMap(([name, value]) => [
    '--set',
    `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  ]);

/** @throws {Error} the command failed */
export function command(args: readonly string[], signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(packageRoot, 'dist', 'main.js'), ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
      ...(signal === undefined ? {} : { signal }),
    });
    child.once('error', reject);
    child.once('exit', (code, by) =>
      code === 0
        ? resolve()
        : reject(new Error(`searchloop ${args.slice(0, 2).join(' ')} ended with ${code ?? by}`)),
    );
  });
}
