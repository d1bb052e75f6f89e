// Reinforcement learning on the command line: engine, index and rewards put together with the trainer.

import type { Config } from '../config/index.js';
import { ConfigError, InvalidInputError } from '../errors.js';
import { evaluate, type Question, sampleOrder, selectPart } from '../evaluation/index.js';
import { type RlParts, slotRunners, trainRl } from '../loop/index.js';
import type { Retriever } from '../retrieval/index.js';
import { rewardSettings, scoreRecord } from '../reward/index.js';
import { type AlgorithmName, referenceDigest, runSettings } from '../training/index.js';
import { sha256File } from '../util/digest.js';
import { mean } from '../util/mean.js';
import { openIndex, searchWidth } from './application.js';
import type { CliContext } from './context.js';
import { counted } from './counted.js';
import { trainingQuestions } from './questions.js';
import { METHOD, openRolloutHouse, type RolloutHouse } from './train-house.js';
import {
  openTrainedModel,
  type RunStart,
  readStart,
  type TrainedModel,
  type TrainFlags,
  withTrainer,
} from './train-parts.js';
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
  const held = selectPart(all, 'validation');
  if (settings.validateEvery > 0 && held.length === 0)
    throw new InvalidInputError(
      `${flags.data}: no question of the validation part, but training.validateEvery is ${settings.validateEvery}; expected 0 or a file with such questions`,
    );
  const model = await openTrainedModel(context);
  const start = readStart(config, settings, flags.adapter, model.decoder);
  const reference = referenceOf(config, start, model);
  const retriever = await openIndex(config, { onNote: output.note, signal });
  try {
    const house = await openRolloutHouse(config, settings, model, retriever);
    try {
      const inputs = {
        data: await sha256File(flags.data),
        reference,
        ...rolloutInputs(config, house, retriever),
      };
      await withTrainer(context, start, flags, model, inputs, async (run, trainer, stop) => {
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
                scoreRecord(record, house.parts.tokenizer, goldenAnswers, rewardSettings(config.training)),
              reference: config.training.reference,
              validate: validation(context, house, held, stop),
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

/** The reference policy's name for the run's identity; null: the policy that the run starts from. */
function referenceOf(
  { training }: Config,
  { settings, adapter }: RunStart,
  { decoder }: TrainedModel,
): string | null {
  if (training.reference === null) return null;
  return referenceDigest(training.reference, decoder, adapter, settings.rank);
}

/** What decides rollouts and rewards, beside the settings of the trainer. */
function rolloutInputs(
  config: Config,
  { engine: { info }, parts }: RolloutHouse,
  retriever: Retriever,
): Record<string, string | number | null> {
  const { engine, rollout, training } = config;
  return {
    index: retriever.snapshotId,
    retriever: retriever.info.kind,
    ef: searchWidth(config, retriever),
    retrieverRetries: rollout.retrieverRetries,
    prompt: parts.prompts.searchR1.digest,
    topK: rollout.topK,
    queryTokens: rollout.queryTokens,
    enginePrecision: info.precision,
    // Which slot a rollout has, and how many tokens are computed side by side, choose the engine's kernels.
    rolloutSequences: info.maxSequences,
    engineSequenceTokens: info.maxSequenceTokens,
    prefillChunkTokens: engine.prefillChunkTokens,
    prefixCacheTokens: engine.prefixCacheTokens,
    rewardRule: training.rewardRule,
    formatWeight: training.formatWeight,
    searchCost: training.searchCost,
    validationQuestions: training.validationQuestions,
  };
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
      retriever: parts.retriever,
      tokenizer: parts.tokenizer,
      method: METHOD,
      adapter: version,
      topK: config.rollout.topK,
      concurrency: engine.info.maxSequences,
      onNote: output.note,
      signal,
    });
    const average = (value: (result: (typeof results)[number]) => number): number => mean(results.map(value));
    return {
      exactMatch: average(({ em }) => em),
      f1: average(({ f1 }) => f1),
      searches: average(({ searches }) => searches),
      formatScore: average(({ formatScore }) => formatScore),
      questions: results.length,
    };
  };
}
