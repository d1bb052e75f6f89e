// How well a policy answers questions of the tiny world, greedy.

import { evaluate, type QuestionResult } from '#searchloop/evaluation/index.js';
import { slotRunners } from '#searchloop/loop/index.js';
import type { TinyHouse, TinyIndex } from './house.js';
import type { WorldQuestion } from './questions.js';

const METHOD = 'search-r1';

/** Figures of a policy on held-out questions, greedy. */
export interface TinyFigures {
  readonly questions: number;
  readonly exactMatch: number;
  readonly oneHop: number;
  readonly twoHop: number;
  readonly oneHopSearches: number;
  readonly twoHopSearches: number;
  readonly validShare: number;
  /** Seconds that the answers took. */
  readonly seconds: number;
}

export interface TinyEvaluation {
  readonly index: TinyIndex;
  readonly topK: number;
  readonly questions: readonly WorldQuestion[];
  readonly signal?: AbortSignal | undefined;
}

/** Greedy answers of the version that the house's rollouts use. */
export async function tinyFigures(
  house: TinyHouse,
  { index, topK, questions, signal }: TinyEvaluation,
  adapter: string | null = house.engine.listAdapters()[0]?.version ?? null,
): Promise<TinyFigures> {
  const begun = performance.now();
  const parts = house.parts(index);
  const results = await evaluate({
    questions,
    runner: slotRunners(house.engine, parts),
    retriever: parts.retriever,
    tokenizer: house.tokenizer,
    method: METHOD,
    adapter,
    topK,
    concurrency: house.engine.info.maxSequences,
    ...(signal === undefined ? {} : { signal }),
  });
  return { ...figuresOfResults(results), seconds: (performance.now() - begun) / 1000 };
}

function figuresOfResults(results: readonly QuestionResult[]): Omit<TinyFigures, 'seconds'> {
  const one = results.filter(({ dataset }) => dataset === 'tiny-one-hop');
  const two = results.filter(({ dataset }) => dataset === 'tiny-two-hop');
  const mean = (list: readonly QuestionResult[], value: (result: QuestionResult) => number): number =>
    list.length === 0 ? 0 : list.reduce((sum, result) => sum + value(result), 0) / list.length;
  const valid = mean(results, ({ validActions }) => validActions);
  const invalid = mean(results, ({ invalidActions }) => invalidActions);
  return {
    questions: results.length,
    exactMatch: mean(results, ({ em }) => em),
    oneHop: mean(one, ({ em }) => em),
    twoHop: mean(two, ({ em }) => em),
    oneHopSearches: mean(one, ({ searches }) => searches),
    twoHopSearches: mean(two, ({ searches }) => searches),
    validShare: valid + invalid === 0 ? 0 : valid / (valid + invalid),
  };
}
