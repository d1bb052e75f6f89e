// The tiny world ready for use: its model imported, its indexes built, its engine running.

import { join } from 'node:path';
import { type Config, loadConfig, packageRoot } from '#searchloop/config/index.js';
import { createEngine, type Engine } from '#searchloop/engine/index.js';
import type { RolloutParts } from '#searchloop/loop/index.js';
import { importModel, openModel, preparePrecision, type StoredModel } from '#searchloop/model/index.js';
import { createRetriever, type Retriever } from '#searchloop/retrieval/index.js';
import { inlineEncoding, loadPrompts } from '#searchloop/rollout/index.js';
import { createTokenizer, type Tokenizer } from '#searchloop/tokenizer/index.js';
import { buildWorldIndexes, emptyRetriever } from './indexes.js';
import { TINY_WORLD_PROMPT } from './tokenizer.js';
import { createWorld, type World } from './world.js';

const TINY_MODEL_ID = 'tiny-world';

/** Where the warm start lies that comes with the project. */
export const tinyModelFolder = (): string => join(packageRoot, 'models', TINY_MODEL_ID);

/** Settings of everything in the tiny world; what its answers and searches need is short. */
export const TINY_SETTINGS = {
  'model.policy': TINY_MODEL_ID,
  'engine.precision': 'fp32',
  'engine.maxSequenceTokens': 320,
  'retrieval.kind': 'bm25',
  'rollout.prompt': TINY_WORLD_PROMPT,
  'rollout.actionBudget': 3,
  'rollout.topK': 3,
  'rollout.turnTokens': 40,
  'rollout.observationTokens': 80,
  'rollout.queryTokens': 24,
} as const;

/** Home folder with the model, and the indexes; both are made once. */
export interface TinyPlace {
  readonly world: World;
  readonly home: string;
  readonly model: StoredModel;
  /** Folders of the indexes: over all facts, and over those that training may see. */
  readonly indexes: { readonly all: string; readonly training: string };
  /** The configuration with further settings over those of the tiny world. */
  config(flags?: Readonly<Record<string, unknown>>): Config;
}

/** Imports the warm start (or another model folder of the same kind) and builds the indexes under `folder`. */
export async function openTinyPlace(folder: string, modelFolder = tinyModelFolder()): Promise<TinyPlace> {
  const world = createWorld();
  const home = join(folder, 'home');
  const model =
    (await openModel(home, TINY_MODEL_ID).catch(() => null)) ??
    (await importModel(modelFolder, home, { id: TINY_MODEL_ID }));
  const indexes = await buildWorldIndexes(join(folder, 'index'), world);
  return {
    world,
    home,
    model,
    indexes,
    config: (flags = {}) =>
      loadConfig({
        flags: { ...TINY_SETTINGS, 'paths.home': home, 'retrieval.index': indexes.all, ...flags },
        env: {},
      }),
  };
}

export type TinyIndex = 'all' | 'training' | 'empty';

/** Engine and search engines; each index is searched by the same policy. */
export interface TinyHouse {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  /** What rollouts that search this index are made of, beside the engine. */
  parts(index: TinyIndex): RolloutParts;
  close(): Promise<void>;
}

/** @param config  of `place.config`; `engine` and `rollout` count */
export async function openTinyHouse(place: TinyPlace, config: Config): Promise<TinyHouse> {
  const { home, model, indexes } = place;
  const source = await model.readTokenizer();
  const tokenizer = createTokenizer(source);
  const graphs = await preparePrecision(home, model, config.engine.precision);
  const engine = await createEngine({
    modelId: model.record.id,
    graphs,
    tokenizer: source,
    settings: config.engine,
    lockStep: true,
    // It takes turns with the trainer.
    spinning: false,
  });
  const search = (folder: string): Promise<Retriever> =>
    createRetriever(place.config({ 'retrieval.index': folder }));
  const retrievers = { all: await search(indexes.all), training: await search(indexes.training) };
  const common = {
    tokenizer,
    encoding: inlineEncoding(tokenizer),
    config: config.rollout,
    prompts: loadPrompts(config.rollout),
  };
  return {
    engine,
    tokenizer,
    parts: (index) => ({ ...common, retriever: index === 'empty' ? emptyRetriever : retrievers[index] }),
    close: async () => {
      await Promise.all([engine.close(), retrievers.all.close(), retrievers.training.close()]);
    },
  };
}
