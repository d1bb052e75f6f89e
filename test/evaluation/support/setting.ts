// The real rollout runner over a scripted generator and passages in memory, asked for capitals.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configSchema } from '../../../src/config/index.js';
import type { EvaluationOptions } from '../../../src/evaluation/evaluate.js';
import type { Question } from '../../../src/evaluation/index.js';
import type { Retriever } from '../../../src/retrieval/index.js';
import { createRolloutRunner, inlineEncoding, loadPrompts } from '../../../src/rollout/index.js';
import { createMemoryRetriever } from '../../support/memory-retriever.js';
import { createPieceTokenizer } from '../../support/piece-tokenizer.js';
import { PASSAGES } from '../../support/rollout-kit.js';
import { createScriptedGenerator } from '../../support/scripted-generator.js';

export const CAPITALS = { Portugal: 'Lisbon', Spain: 'Madrid', Norway: 'Oslo', France: 'Paris' };

export const questions: Question[] = Object.entries(CAPITALS).map(([country, capital], i) => ({
  id: `q${i}`,
  dataset: i < 2 ? 'iberia' : 'elsewhere',
  question: `What is the capital of ${country}?`,
  goldenAnswers: [capital],
  supportingTitles: [],
}));

let folder: string;

/** A folder for each test's evaluation, gone afterwards. @param use  gets it before the test */
export function useRunFolder(use: (folder: string) => void): void {
  beforeEach(async () => {
    folder = join(await mkdtemp(join(tmpdir(), 'evaluate-')), 'run');
    use(folder);
  });
  afterEach(() => rm(join(folder, '..'), { recursive: true, force: true }));
}

export const capitals = createMemoryRetriever({ passages: PASSAGES });

/** An evaluation in that folder whose policy searches with the question and answers with the first capital that the passages name. */
export function createSetting(
  beforeToken?: () => void,
  { retriever = capitals }: { readonly retriever?: Retriever } = {},
) {
  const tokenizer = createPieceTokenizer();
  const generator = createScriptedGenerator({
    tokenizer,
    policy: (turn, sequence) => {
      const text = tokenizer.decode(sequence);
      const country = /capital of (\w+)\?/.exec(text)?.[1] ?? '';
      if (turn === 0)
        return tokenizer.encodePlain(`<think>look</think><search>capital of ${country}</search>`);
      const capital = new RegExp(`\\) (\\w+) is the capital of ${country}`).exec(text)?.[1] ?? 'unknown';
      return tokenizer.encodePlain(`<think>so</think><answer>${capital}</answer>`);
    },
    eosTokenIds: [tokenizer.endId],
    ...(beforeToken === undefined ? {} : { beforeToken }),
  });
  const { rollout: config } = configSchema.parse({});
  const runner = createRolloutRunner({
    generator,
    retriever,
    tokenizer,
    encoding: inlineEncoding(tokenizer),
    config: { ...config, retrieverRetries: 0 },
    prompts: loadPrompts(config),
  });
  const options: EvaluationOptions = {
    runner,
    retriever,
    searchPausesMs: [1, 1],
    tokenizer,
    method: 'search-r1',
    questions,
    concurrency: 3,
    settings: { method: 'search-r1' },
    output: folder,
  };
  return { generator, options };
}
