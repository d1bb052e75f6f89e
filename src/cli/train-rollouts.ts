// Reinforcement learning on the command line: engine, index and rewards put together with the trainer.

import { ConfigError, InvalidInputError } from '../errors.js';
import { evaluate, type Question, sampleOrder, selectPart } from '../evaluation/index.js';
import { type RlParts, slotRunners, trainRl } from '../loop/index.js';
import { scoreRecord } from '../reward/index.js';
import { type AlgorithmName, runSettings } from '../training/index.js';
import { sha256File } from '../util/digest.js';
import { openIndex } from './application.js';
import type { CliContext } from './context.js';
import { counted } from './counted.js';
import { trainingQuestions } from './questions.js';
import { METHOD, openRolloutHouse, type RolloutHouse, rewardSettings } from './train-house.js';
import { openTrainedModel, type TrainFlags, withTrainer } from './train-parts.js';
import { openTrainView, outcomeText } from './train-view.js';

/** @throws {ConfigError} whole weights: an engine cannot load them as an adapter */
export async function trainOnRollouts(
  context: CliContext,
  algorithm: AlgorithmName,
  flags: TrainFlags & { readonly data: string },
): Promise<void> {
  const { config, output, signal } = context;
  const settings = runSettings(config.training, algorithm);
  if (settings.trained === 'whole')
    throw new ConfigError(
      'rollouts come from an engine that loads adapters: set training.trained=lora (presets of the papers train all weights)',
    );
  const { all, taken: questions } = await trainingQuestions(flags.data, output.note);
  if (questions.length === 0) throw new InvalidInputError(`${flags.data}: no question of the training part`);
  const model = await openTrainedModel(context);
  const retriever = await openIndex(config, { onNote: output.note, signal });
  try {
    const house = await openRolloutHouse(config, settings, model, retriever);
    try {
      const inputs = {
        data: await sha256File(flags.data),
        index: retriever.snapshotId,
        prompt: house.parts.prompts.searchR1.digest,
        topK: config.rollout.topK,
        rewardRule: config.training.rewardRule,
        formatWeight: config.training.formatWeight,
        searchCost: config.training.searchCost,
        reference: config.training.reference,
      };
      await withTrainer(context, settings, flags, model, inputs, async (run, trainer, stop) => {
        const view = await openTrainView(output, run);
        try {
          const outcome = await trainRl(
            {
              settings,
              run,
              trainer,
              questions,
              rollouts: house.rollouts,
              tokenizer: house.parts.tokenizer,
              score: (record, { goldenAnswers }) =>
                scoreRecord(record, house.parts.tokenizer, goldenAnswers, rewardSettings(config)),
              reference: config.training.reference,
              validateEvery: config.training.validateEvery,
              validate: validation(context, house, selectPart(all, 'validation'), stop),
            },
            { ...view, signal: stop, onNote: output.note },
          );
          output.result(outcome, outcomeText(outcome, run.folder));
        } finally {
          await view.close();
        }
      });
    } finally {
      await house.close();
    }
  } finally {
    await retriever.close();
  }
}

/** Greedy answers to a fair sample of the validation part, each in a slot of its own: the same policy, the same figures. */
function validation(
  { config, output }: CliContext,
  { engine, parts, rollouts }: RolloutHouse,
  held: readonly Question[],
  signal: AbortSignal,
): RlParts['validate'] {
  const questions = sampleOrder(held).slice(0, config.training.validationQuestions);
  if (questions.length === 0) return undefined;
  const runner = slotRunners(engine, parts);
  return async ({ folder, version, step }) => {
    output.note(`step ${step} answers ${counted(questions.length, 'question')} of the validation part`);
    await rollouts.use(folder, version);
    const results = await evaluate({
      questions,
      runner,
      tokenizer: parts.tokenizer,
      method: METHOD,
      adapter: version,
      topK: config.rollout.topK,
      concurrency: engine.info.maxSequences,
      signal,
    });
    const mean = (value: (result: (typeof results)[number]) => number): number =>
      results.reduce((sum, result) => sum + value(result), 0) / results.length;
    return {
      exactMatch: mean(({ em }) => em),
      f1: mean(({ f1 }) => f1),
      searches: mean(({ searches }) => searches),
      formatScore: mean(({ formatScore }) => formatScore),
      questions: results.length,
    };
  };
}
