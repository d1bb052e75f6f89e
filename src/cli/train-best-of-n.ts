import { Command, InvalidArgumentError } from 'commander';
import { InvalidInputError } from '../errors.js';
import { questionDigest, sampleOrder } from '../evaluation/index.js';
import { sampleBest } from '../loop/index.js';
import { readAdapter } from '../model/index.js';
import { rewardSettings, scoreRecord } from '../reward/index.js';
import { runSettings } from '../training/index.js';
import { canonicalJson, sha256Hex } from '../util/digest.js';
import { openIndex, searchWidth } from './application.js';
import { type CliContext, contextOf } from './context.js';
import { counted } from './counted.js';
import { wholeNumber } from './flag-values.js';
import { withProgress } from './progress-rate.js';
import { trainingQuestions } from './questions.js';
import { openRolloutHouse } from './train-house.js';
import { openTrainedModel } from './train-parts.js';

interface BestOfNFlags {
  readonly data: string;
  readonly output: string;
  readonly adapter: string;
  readonly samples: number;
  readonly minReward: number;
  readonly count?: number;
  readonly index?: string;
  readonly retrieval?: string;
}

/** `train best-of-n`: rejection sampling. */
export function bestOfNCommand(): Command {
  return new Command('best-of-n')
    .description('sample several rollouts a question and keep the best ones as trajectories for sft')
    .requiredOption('-d, --data <file>', 'questions with gold answers (JSONL)')
    .requiredOption('-o, --output <file>', 'file of trajectories (JSONL); an unfinished one is gone on with')
    .requiredOption('-a, --adapter <folder>', 'PEFT folder of the policy to sample from')
    .option('-n, --samples <number>', 'rollouts of a question', wholeNumber(1), 8)
    .option(
      '-c, --count <number>',
      'questions, a fair sample of the training part (default: all)',
      wholeNumber(1),
    )
    .option('--min-reward <number>', 'worse rollouts are not kept', reward, 1)
    .option('--index <name>', 'name or folder of an index (retrieval.index)')
    .option('--retrieval <kind>', 'hnsw, bm25, hybrid or remote (retrieval.kind)')
    .action(async (flags: BestOfNFlags, self: Command) => {
      const settings = { 'retrieval.index': flags.index, 'retrieval.kind': flags.retrieval };
      await sample(contextOf(self, settings), flags);
    });
}

async function sample(context: CliContext, flags: BestOfNFlags): Promise<void> {
  const { config, output, signal } = context;
  const settings = runSettings(config.training, 'grpo');
  const { taken } = await trainingQuestions(flags.data, output.note);
  const questions = sampleOrder(taken).slice(0, flags.count);
  if (questions.length === 0) throw new InvalidInputError(`${flags.data}: no question of the training part`);
  const model = await openTrainedModel(context);
  const { digest: version } = readAdapter(flags.adapter, model.decoder);
  const retriever = await openIndex(config, { onNote: output.note, signal });
  try {
    const house = await openRolloutHouse(config, settings, model, retriever);
    const { tokenizer, prompts } = house.parts;
    const rewards = rewardSettings(config.training);
    try {
      await house.rollouts.use(flags.adapter, version);
      await withProgress(context, async (onProgress) => {
        const summary = await sampleBest({
          questions,
          rollouts: house.rollouts,
          tokenizer,
          score: (record, { goldenAnswers }) => scoreRecord(record, tokenizer, goldenAnswers, rewards),
          samples: flags.samples,
          minReward: flags.minReward,
          seed: settings.seed,
          output: flags.output,
          onNote: output.note,
          settingsDigest: sha256Hex(
            canonicalJson({
              version,
              model: house.engine.info.modelDigest,
              index: retriever.snapshotId,
              retriever: retriever.info.kind,
              ef: searchWidth(config, retriever),
              prompt: prompts.searchR1.digest,
              rollout: house.parts.config,
              topK: config.rollout.topK,
              slots: house.engine.info.maxSequences,
              sequenceTokens: house.engine.info.maxSequenceTokens,
              samples: flags.samples,
              minReward: flags.minReward,
              seed: settings.seed,
              rewards,
              questions: questions.map((question) => [question.id, questionDigest(question)]),
            }),
          ),
          onProgress,
          signal,
        });
        const made = counted(summary.trajectories, 'trajectory', 'trajectories');
        output.result(summary, `${made} of ${counted(summary.questions, 'question')}`);
      });
    } finally {
      await house.close();
    }
  } finally {
    await retriever.close();
  }
}

function reward(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('expected a number');
  return value;
}
