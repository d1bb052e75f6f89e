// Supervised training over a file of given trajectories: shuffled passes, one optimizer update a step.

import { CancelledError } from '../../errors.js';
import {
  derivedSeed,
  type Example,
  itemsBetween,
  learningRates,
  openFigures,
  pruneCheckpoints,
  type RunSettings,
  type StepReport,
  type StepWork,
  type Trainer,
} from '../../training/index.js';
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
export function supervisedSteps(settings: RunSettings, examples: number): number {
  return settings.steps ?? Math.ceil((settings.epochs * examples) / settings.batchSequences);
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
  const { batchSequences, seed, epochs, weightDecay, maxGradientNorm } = settings;
  const end = settings.steps === null ? epochs * examples.length : Number.POSITIVE_INFINITY;
  const first = (step - 1) * batchSequences;
  const chosen = itemsBetween(first, Math.min(first + batchSequences, end), examples.length, seed);
  const rates = learningRates(settings, step, steps);
  return {
    step,
    version: '',
    algorithm: settings.objective,
    supervised: true,
    sequences: chosen.map((index) => ({ ...(examples[index] as Example), rollout: null })),
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
