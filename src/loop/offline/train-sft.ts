// Supervised training over a file of given trajectories: shuffled passes, one optimizer update a step.

import { CancelledError } from '../../errors.js';
import {
  type Example,
  learningRates,
  openFigures,
  pruneCheckpoints,
  type RunSettings,
  type StepReport,
  type StepWork,
  type Trainer,
} from '../../training/index.js';
import { derivedSeed } from '../../util/derived-seed.js';
import { shuffledOrder } from '../../util/random.js';
import { handOver, type TrainingOutcome } from './outcome.js';
import type { RunFolder } from './run-folder.js';

export interface TrainingEvents {
  /** After each step, before it is committed. */
  readonly onStep?: (report: StepReport, steps: number) => void;
  /** Tokens that went through the model. */
  readonly onTokens?: (tokens: number) => void;
  readonly signal?: AbortSignal;
}

/** Steps of a supervised run: as configured, else what the passes over the data take. */
function supervisedSteps(settings: RunSettings, examples: number): number {
  return settings.steps ?? settings.epochs * stepsOfPass(settings, examples);
}

const stepsOfPass = ({ batchSequences }: RunSettings, examples: number): number =>
  Math.ceil(examples / batchSequences);

/**
 * Indices of a step's examples: passes over all of them, each shuffled anew. A pass ends with a batch of what is left, so
 * that what a step takes depends on its number alone, and a run that goes on over more epochs leaves nothing out.
 */
function examplesOf(settings: RunSettings, examples: number, step: number): number[] {
  const { batchSequences, seed } = settings;
  const perPass = stepsOfPass(settings, examples);
  const pass = Math.floor((step - 1) / perPass);
  const first = ((step - 1) % perPass) * batchSequences;
  return shuffledOrder(examples, derivedSeed(seed, 'pass', pass)).slice(first, first + batchSequences);
}

/**
 * Trains from the trainer's step to the end, with a checkpoint every `checkpointEvery` steps.
 * @throws {CancelledError} the signal fired; the steps done so far are committed, and the run can go on from there
 */
export async function trainSft(
  run: RunFolder,
  trainer: Trainer,
  settings: RunSettings,
  examples: readonly Example[],
  events: TrainingEvents = {},
): Promise<TrainingOutcome> {
  const { signal, onTokens } = events;
  const steps = supervisedSteps(settings, examples.length);
  const figures = await openFigures(run.folder, run.metrics, trainer.step);
  try {
    while (trainer.step < steps) {
      const work = supervisedWork(settings, examples, trainer.step + 1, steps);
      const report = await trainer.run(work, {
        ...(signal === undefined ? {} : { signal }),
        ...(onTokens === undefined ? {} : { onTokens }),
      });
      await figures.step({
        step: report.step,
        ...report.metrics,
        tokens: report.tokens,
        seconds: report.seconds,
      });
      events.onStep?.(report, steps);
      if (report.step % settings.checkpointEvery === 0 || report.step === steps) {
        await trainer.commit();
        await pruneCheckpoints(run.checkpoints, { keepLast: settings.keepCheckpoints, keep: [] });
      }
    }
  } catch (error) {
    // What was done so far is kept.
    if (error instanceof CancelledError && trainer.step > trainer.committed.step) await trainer.commit();
    throw error;
  } finally {
    await figures.close();
  }
  return handOver(run, steps, trainer.committed);
}

function supervisedWork(
  settings: RunSettings,
  examples: readonly Example[],
  step: number,
  steps: number,
): StepWork {
  const { batchSequences, seed, weightDecay, maxGradientNorm } = settings;
  const chosen = examplesOf(settings, examples.length, step);
  const rates = learningRates(settings, step, steps);
  return {
    step,
    version: '',
    algorithm: settings.objective,
    supervised: true,
    sequences: chosen.map((index) => ({ ...(examples[index] as Example), rollout: null })),
    demonstrationWeight: 0,
    batchEpochs: 1,
    miniBatchSequences: batchSequences,
    policy: { learningRate: rates.policy, weightDecay, maxGradientNorm },
    value: { learningRate: rates.value, weightDecay, maxGradientNorm },
    microBatchTokens: settings.microBatchTokens,
    seed: derivedSeed(seed, 'step', step),
    reference: null,
    versions: {},
  };
}
