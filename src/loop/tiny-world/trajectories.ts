// Trajectories of the tiny world's teacher, through real rollouts.

import type { Config } from '../../config/index.js';
import type { EngineInfo } from '../../engine/index.js';
import { END_TOKEN, type World, type WorldQuestion, worldQuestions } from '../../evaluation/index.js';
import type { StoredModel } from '../../model/index.js';
import { createRetriever } from '../../retrieval/index.js';
import { inlineEncoding, loadPrompts } from '../../rollout/index.js';
import { createTokenizer, type Tokenizer } from '../../tokenizer/index.js';
import { derivedSeed, type Example, randomNumbers } from '../../training/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';
import { type TeachingHouse, teach, teacherOf } from '../warm-start/teach.js';
import type { TinyRecipe, TinyStage } from './recipe.js';
import { tinyScript } from './teacher.js';

/** Searches of several lessons travel together. */
const LESSONS_AT_ONCE = 64;

interface TeachingParts {
  readonly world: World;
  readonly recipe: Pick<TinyRecipe, 'seed' | 'topKs'>;
  readonly stage: Pick<TinyStage, 'name' | 'habits' | 'trajectories'>;
  readonly config: Config;
  readonly model: StoredModel;
  readonly signal?: AbortSignal | undefined;
}

/** Trajectories over questions of the training half, searched in the index that holds no other facts. */
export async function tinyTrajectories({
  world,
  recipe,
  stage,
  config,
  model,
  signal,
}: TeachingParts): Promise<Example[]> {
  const tokenizer = createTokenizer(await model.readTokenizer());
  const retriever = await createRetriever(config);
  const house: TeachingHouse = {
    info: teacherInfo(model, tokenizer, config),
    tokenizer,
    encoding: inlineEncoding(tokenizer),
    retriever,
    config: config.rollout,
    prompts: loadPrompts(config.rollout),
  };
  const questions = worldQuestions(world, 'training');
  const lesson = async (i: number): Promise<TrajectoryRecord> => {
    const question = questions[i % questions.length] as WorldQuestion;
    const seed = derivedSeed(recipe.seed, stage.name, i);
    const topK = recipe.topKs[Math.floor(randomNumbers(seed)() * recipe.topKs.length)] as number;
    const teacher = teacherOf(tinyScript(world, question, stage.habits, seed));
    return teach(
      house,
      { id: `${stage.name}-${i}`, method: 'search-r1', question: question.question, topK, teacher },
      signal,
    );
  };
  try {
    const records: TrajectoryRecord[] = [];
    while (records.length < stage.trajectories) {
      const count = Math.min(LESSONS_AT_ONCE, stage.trajectories - records.length);
      const from = records.length;
      records.push(...(await Promise.all(Array.from({ length: count }, (_, i) => lesson(from + i)))));
    }
    return records.map(exampleOf);
  } finally {
    await retriever.close();
  }
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
