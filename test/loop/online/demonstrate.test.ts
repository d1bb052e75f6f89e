// Labelled questions answered by rule over a real retriever and runner: which give a demonstration, and what is in it.

import { configSchema } from '../../../src/config/index.js';
import { RetrievalError } from '../../../src/errors.js';
import { Attempt } from '../../../src/loop/online/attempt.js';
import { type DemonstrationParts, demonstrate } from '../../../src/loop/online/demonstrate.js';
import type { KnownAnswer } from '../../../src/loop/online/known-answer.js';
import { SearchOutages } from '../../../src/loop/online/search-outages.js';
import { Unaskable } from '../../../src/loop/online/unaskable.js';
import type { Retriever } from '../../../src/retrieval/index.js';
import { inlineEncoding, loadPrompts, SearchesAwayError } from '../../../src/rollout/index.js';
import { audit, sampledText } from '../../../src/trajectory/index.js';
import { createMemoryRetriever } from '../../support/memory-retriever.js';
import { createPieceTokenizer } from '../../support/piece-tokenizer.js';
import { PASSAGES } from '../../support/rollout-kit.js';

const tokenizer = createPieceTokenizer();
const START = { pass: 0, cursor: '' };

const answer = (question: string, goldenAnswers: string[], keyId = 'boss'): KnownAnswer =>
  ({
    key: question.toLowerCase(),
    head: { id: `id of ${question}`, keyId: null },
    messages: [{ role: 'user', content: question }],
    goldenAnswers,
    goldSources: [{ keyId, role: keyId === 'boss' ? 'admin' : 'feedback' }],
  }) as unknown as KnownAnswer;

const PORTUGAL = answer('What is the capital of Portugal?', ['lisbon', 'Lisboa']);
const NORWAY = answer('What is the capital of Norway?', ['Oslo']);
const LOST = answer('What is the capital of Peru?', ['Lima']);
const YES = answer('Is Madrid the capital of Spain?', ['yes']);
const VOTED = answer('What is the capital of Spain?', []);

interface Given {
  readonly retriever?: Retriever | null;
  readonly demonstrations?: number;
  readonly maxSequenceTokens?: number;
  readonly keyShare?: number;
}

function partsOf(answers: readonly KnownAnswer[], given: Given = {}): DemonstrationParts {
  const { retriever = createMemoryRetriever({ passages: PASSAGES }), demonstrations = 8 } = given;
  const { maxSequenceTokens = 4096, keyShare = 0.25 } = given;
  const config = { ...configSchema.parse({}).rollout, retrieverRetries: 0 };
  const house = {
    engine: {
      info: {
        ...{ modelId: 'm', modelDigest: 'a'.repeat(64), precision: 'fp32', vocabSize: tokenizer.vocabSize },
        ...{ maxSequenceTokens: 4096, eosTokenIds: [tokenizer.endId], maxSequences: 1, fingerprint: 'f' },
      },
    },
    priority: { idle: async () => {} },
    training: {
      ...{ retriever, tokenizer, encoding: inlineEncoding(tokenizer), config },
      prompts: loadPrompts({ prompt: 'search-r1' }),
    },
    settings: { demonstrations, keyShare },
    run: { maxSequenceTokens },
    topK: 2,
    outages: new SearchOutages(),
    onNote: () => {},
  };
  return {
    house: house as unknown as DemonstrationParts['house'],
    labels: {
      toReplay: () => new Map(answers.map((item) => [item.key, item])),
      present: async (wanted) => [...wanted],
      unaskable: new Unaskable(),
    },
    seed: 1,
    attempt: new Attempt(),
    signal: new AbortController().signal,
    searchPausesMs: [1, 1],
  };
}

const shownOf = async (parts: DemonstrationParts, taken: readonly KnownAnswer[] = []) =>
  (await demonstrate(parts, START, new Set(taken.map(({ key }) => key)))).demonstrations;
const namesOf = (shown: readonly { readonly origin: KnownAnswer }[]) =>
  shown.map(({ origin }) => origin.key).sort();

test('a question is searched for as it is and answered in the words of the passage; nothing of the search is learned', async () => {
  const [shown] = await shownOf(partsOf([PORTUGAL]));
  const { record } = shown!;
  expect(audit(record, tokenizer)).toEqual([]);
  expect(record).toMatchObject({ answer: 'Lisbon', stop: 'answer', method: 'search-r1' });
  expect(record.searches.map(({ query }) => query)).toEqual(['What is the capital of Portugal']);
  const written = sampledText(
    record.tokenIds.filter((_, t) => record.lossMask[t] === 1),
    tokenizer,
  );
  expect(written).toContain('Doc 1 says: Lisbon is the capital of Portugal.');
  expect(written).not.toContain('river Tagus');
});

test('none of what no search finds, of yes and no, of a question without gold answers, of those that the step asks anyway', async () => {
  const all = [PORTUGAL, NORWAY, LOST, YES, VOTED];
  expect(namesOf(await shownOf(partsOf(all)))).toEqual([NORWAY.key, PORTUGAL.key]);
  expect(namesOf(await shownOf(partsOf(all), [NORWAY]))).toEqual([PORTUGAL.key]);
  expect(await shownOf(partsOf(all, { demonstrations: 0 }))).toEqual([]);
  expect(await shownOf(partsOf(all, { retriever: null }))).toEqual([]);
  expect(await shownOf(partsOf(all, { maxSequenceTokens: 20 }))).toEqual([]);
});

test('the pass goes on behind them, one key has its share of them, and what was deleted is not shown', async () => {
  const many = Array.from({ length: 12 }, (_, i) =>
    answer(`What is the capital of Portugal, ${i}?`, ['Lisbon'], i < 6 ? 'boss' : 'user'),
  );
  const parts = partsOf(many, { demonstrations: 4 });
  const first = await demonstrate(parts, START, new Set());
  const second = await demonstrate(parts, first.place, new Set());
  const keys = [...first.demonstrations, ...second.demonstrations].map(({ origin }) => origin.key);
  expect(keys).toHaveLength(8);
  expect(new Set(keys).size).toBe(keys.length);
  const fromUser = first.demonstrations.filter(({ origin }) => origin.goldSources[0]?.keyId === 'user');
  expect(fromUser.length).toBeLessThanOrEqual(1);
  const gone = partsOf(many);
  const labels = { ...gone.labels, present: async () => [] };
  expect(await shownOf({ ...gone, labels })).toEqual([]);
});

test('an outage of the search is waited for, then told', async () => {
  const memory = createMemoryRetriever({ passages: PASSAGES });
  let left = 1;
  const failing = (isAway: () => boolean): Retriever => ({
    ...memory,
    async search(queries, k, options) {
      if (isAway()) throw new RetrievalError('the engine is away');
      return memory.search(queries, k, options);
    },
  });
  expect(await shownOf(partsOf([PORTUGAL], { retriever: failing(() => left-- > 0) }))).toHaveLength(1);
  await expect(shownOf(partsOf([PORTUGAL], { retriever: failing(() => true) }))).rejects.toThrow(
    SearchesAwayError,
  );
});
