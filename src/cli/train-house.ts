// What rollouts in training are made of: an engine in lock-step mode, an index, the rewards.

import { availableParallelism } from 'node:os';
import type { Config } from '../config/index.js';
import { createEngine, type Engine } from '../engine/index.js';
import { ConfigError } from '../errors.js';
import { LockStepRollouts, type RolloutParts } from '../loop/index.js';
import { preparePrecision } from '../model/index.js';
import type { Retriever } from '../retrieval/index.js';
import { createBackgroundEncoding, loadPrompts } from '../rollout/index.js';
import type { RunSettings } from '../training/index.js';
import type { TrainedModel } from './train-parts.js';

export const METHOD = 'search-r1';

export interface RolloutHouse {
  readonly engine: Engine;
  readonly parts: RolloutParts;
  readonly rollouts: LockStepRollouts;
  close(): Promise<void>;
}

/** Tokens of a rollout: those of the preset within the engine's, unless they are given. */
function sequenceTokens({ engine, training }: Config, { maxSequenceTokens }: RunSettings): number {
  if (training.maxSequenceTokens !== null && maxSequenceTokens > engine.maxSequenceTokens)
    throw new ConfigError(
      `training.maxSequenceTokens ${maxSequenceTokens}: rollouts come from the engine; expected at most engine.maxSequenceTokens, which is ${engine.maxSequenceTokens}`,
    );
  return Math.min(maxSequenceTokens, engine.maxSequenceTokens);
}

/**
 * Engine and all that rollouts in training are made of.
 * @throws {ConfigError} trajectories longer than the engine's sequences are asked for
 */
export async function openRolloutHouse(
  config: Config,
  settings: RunSettings,
  { home, model }: TrainedModel,
  retriever: Retriever,
): Promise<RolloutHouse> {
  // What fails by settings fails before there is a thread to close.
  const prompts = loadPrompts(config.rollout);
  const maxSequenceTokens = sequenceTokens(config, settings);
  const source = await model.readTokenizer();
  const engine = await createEngine({
    modelId: model.record.id,
    graphs: await preparePrecision(home, model, config.engine.precision),
    tokenizer: source,
    settings: {
      ...config.engine,
      threads: config.engine.threads || availableParallelism(),
      maxSequences: config.training.rolloutSequences,
      maxSequenceTokens,
    },
    lockStep: true,
    // It takes turns with the trainer.
    spinning: false,
  });
  const encoding = createBackgroundEncoding(source);
  const parts: RolloutParts = {
    retriever,
    tokenizer: encoding.tokenizer,
    encoding,
    config: { ...config.rollout, ...settings.rollout },
    prompts,
  };
  const { topK } = config.rollout;
  return {
    engine,
    parts,
    rollouts: new LockStepRollouts({ engine, parts, method: METHOD, topK }),
    close: async () => void (await Promise.all([engine.close(), encoding.close()])),
  };
}
