// Rollouts of a run while searches fail: the run has the rollouts that it would have had, or ends and can be gone on with.

import { configSchema } from '../../../src/config/index.js';
import type { Engine } from '../../../src/engine/index.js';
import { InvalidInputError, RetrievalError, UnavailableError } from '../../../src/errors.js';
import type { Question } from '../../../src/evaluation/index.js';
import { LockStepRollouts, type RolloutJob } from '../../../src/loop/offline/lock-step-rollouts.js';
import { loadPrompts } from '../../../src/rollout/index.js';
import { createMemoryRetriever } from '../../support/memory-retriever.js';
import { createPieceTokenizer } from '../../support/piece-tokenizer.js';
import { PASSAGES } from '../../support/rollout-kit.js';
import { createScriptedGenerator, scriptOf } from '../../support/scripted-generator.js';

/** @param failures  so many searches fail */
function rolloutsWith(failures: number, searchPausesMs: readonly number[]): LockStepRollouts {
  const tokenizer = createPieceTokenizer();
  const memory = createMemoryRetriever({ passages: PASSAGES });
  let left = failures;
  const retriever: typeof memory = {
    ...memory,
    async search(queries, k, options) {
      if (left-- > 0) throw new RetrievalError('the engine is away');
      return memory.search(queries, k, options);
    },
  };
  const engine = createScriptedGenerator({
    tokenizer,
    policy: scriptOf(tokenizer, ['<search>capital of Portugal</search>', '<answer>Lisbon</answer>']),
    eosTokenIds: [tokenizer.endId],
  }) as unknown as Engine;
  const config = { ...configSchema.parse({}).rollout, retrieverRetries: 0 };
  const parts = { retriever, tokenizer, config, prompts: loadPrompts({ prompt: 'search-r1' }) };
  return new LockStepRollouts({ engine, parts, method: 'search-r1', topK: 1, searchPausesMs });
}

const jobs = ['a', 'b'].map((id) => ({
  id,
  groupId: 'g',
  seed: 1,
  question: { question: 'What is the capital of Portugal?' },
})) as unknown as RolloutJob[];

test('searches that fail for a while are waited for', async () => {
  const records = await rolloutsWith(5, [1, 1, 1, 1, 1, 1]).roll(jobs);
  expect(records.map(({ searches }) => searches.map(({ error }) => error))).toEqual([[null], [null]]);
  expect(records.map(({ answer }) => answer)).toEqual(['Lisbon', 'Lisbon']);
});

test('searches that do not come back end the run', async () => {
  await expect(rolloutsWith(Number.POSITIVE_INFINITY, [1]).roll(jobs)).rejects.toThrow(UnavailableError);
});

test('questions that do not fit the window are left out and told, before any is rolled out', async () => {
  const rollouts = rolloutsWith(0, []);
  const question = (id: string, text: string) => ({ ...jobs[0]?.question, id, question: text }) as Question;
  const [short, other] = [question('short', 'What is it?'), question('other', 'Where is it?')];
  const long = question('long', 'far '.repeat(5000));
  const notes: string[] = [];
  const onNote = (line: string) => notes.push(line);
  expect(await rollouts.askable([short, long, other], { onNote })).toEqual([short, other]);
  expect(notes).toEqual([
    expect.stringMatching(/^left out: 1 of 3 questions cannot be asked; the first, long: .* length is 4096/),
  ]);
  expect(await rollouts.askable([short, other], { onNote })).toEqual([short, other]);
  expect(notes).toHaveLength(1);
  await expect(rollouts.askable([long])).rejects.toThrow(InvalidInputError);
});
