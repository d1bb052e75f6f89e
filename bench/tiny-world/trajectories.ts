// Trajectories of the tiny world's teacher, through real rollouts.

import type { Config } from '#searchloop/config/index.js';
import type { EngineInfo } from '#searchloop/engine/index.js';
import { type TeachingHouse, teach, teacherOf } from '#searchloop/loop/warm-start/teach.js';
import type { StoredModel } from '#searchloop/model/index.js';
import { createRetriever, type Retriever } from '#searchloop/retrieval/index.js';
import { inlineEncoding, loadPrompts } from '#searchloop/rollout/index.js';
import { createTokenizer, type Tokenizer } from '#searchloop/tokenizer/index.js';
import type { Example } from '#searchloop/training/index.js';
import type { TrajectoryRecord } from '#searchloop/trajectory/index.js';
import { derivedSeed } from '#searchloop/util/derived-seed.js';
import { randomNumbers } from '#searchloop/util/random.js';
import { wordRetriever } from './indexes.js';
import { lessonQuestions, type WorldQuestion, worldPassages } from './questions.js';
import type { TinyRecipe, TinyStage } from './recipe.js';
import { tinyScript } from './teacher.js';
import { END_TOKEN } from './tokenizer.js';
import { otherWorld, type World } from './world.js';

/** Lessons that run side by side, and that share a world where each has another. */
const LESSONS_AT_ONCE = 64;

export interface TeachingParts {
  readonly world: World;
  readonly recipe: Pick<TinyRecipe, 'seed' | 'topKs'>;
  readonly stage: Pick<TinyStage, 'name' | 'worlds' | 'habits' | 'trajectories'>;
  /** Its index is searched where the world is the own one: it must hold the half to learn from, and no more. */
  readonly config: Config;
  readonly model: StoredModel;
  readonly signal?: AbortSignal | undefined;
}

/** Trajectories of a stage; the same parts give the same ones. */
export async function tinyTrajectories(parts: TeachingParts): Promise<Example[]> {
  const { stage, config, world } = parts;
  const own = stage.worlds === 'own' ? classOf(world, await createRetriever(config)) : null;
  const records: TrajectoryRecord[] = [];
  try {
    for (let from = 0; from < stage.trajectories; from += LESSONS_AT_ONCE) {
      const taught = own ?? otherClass(world, derivedSeed(parts.recipe.seed, stage.name, 'world', from));
      const count = Math.min(LESSONS_AT_ONCE, stage.trajectories - from);
      records.push(...(await lessons(parts, taught, from, count)));
    }
    return records.map(exampleOf);
  } finally {
    await own?.retriever.close();
  }
}

/** A world, its questions and how it is searched. */
interface TaughtWorld {
  readonly world: World;
  readonly questions: readonly WorldQuestion[];
  readonly retriever: Retriever;
}

const classOf = (world: World, retriever: Retriever): TaughtWorld => ({
  world,
  questions: lessonQuestions(world),
  retriever,
});

function otherClass(world: World, seed: number): TaughtWorld {
  const other = otherWorld(world, seed);
  return classOf(other, wordRetriever(worldPassages(other, ['training'])));
}

async function lessons(
  { recipe, stage, config, model, signal }: TeachingParts,
  { world, questions, retriever }: TaughtWorld,
  from: number,
  count: number,
): Promise<TrajectoryRecord[]> {
  const tokenizer = createTokenizer(await model.readTokenizer());
  const house: TeachingHouse = {
    info: teacherInfo(model, tokenizer, config),
    tokenizer,
    encoding: inlineEncoding(tokenizer),
    retriever,
    config: config.rollout,
    prompts: loadPrompts(config.rollout),
  };
  const lesson = (i: number): Promise<TrajectoryRecord> => {
    const seed = derivedSeed(recipe.seed, stage.name, i);
    const random = randomNumbers(seed);
    const topK = recipe.topKs[Math.floor(random() * recipe.topKs.length)] as number;
    const question = questions[Math.floor(random() * questions.length)] as WorldQuestion;
    const teacher = teacherOf(() => tinyScript(world, question, stage.habits, seed));
    const messages = [{ role: 'user' as const, content: question.question }];
    return teach(house, { id: `${stage.name}-${i}`, method: 'search-r1', messages, topK, teacher }, signal);
  };
  return Promise.all(Array.from({ length: count }, (_, i) => lesson(from + i)));
}

function teacherInfo(model: StoredModel, tokenizer: Tokenizer, config: Config): EngineInfo {
  return {
    modelId: model.record.id,
    modelDigest: model.record.digest,
    precision: config.engine.precision,
    vocabSize: tokenizer.vocabSize,
    maxSequenceTokens: config.engine.maxSequenceTokens,
    eosTokenIds: [tokenizer.addedTokens.get(END_TOKEN) as number],
    maxSequences: 1,
    fingerprint: 'teacher',
  };
}

const exampleOf = ({ id, tokenIds, lossMask, origin }: TrajectoryRecord): Example => ({
  id,
  tokenIds: Int32Array.from(tokenIds),
  lossMask: Uint8Array.from(lossMask),
  environmentMask: Uint8Array.from(origin, (from) => (from === 'environment' ? 1 : 0)),
});
