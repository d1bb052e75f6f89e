// Rollouts of the loop while searches fail: an outage is waited for or told, and never becomes something to learn from.

import { configSchema } from '../../../src/config/index.js';
import { RetrievalError } from '../../../src/errors.js';
import { type IdleJob, rollIdle } from '../../../src/loop/online/idle-rollouts.js';
import { createPriority } from '../../../src/loop/online/priority.js';
import { SearchOutages } from '../../../src/loop/online/search-outages.js';
import { Unaskable } from '../../../src/loop/online/unaskable.js';
import type { Retriever } from '../../../src/retrieval/index.js';
import { loadPrompts, SearchesAwayError } from '../../../src/rollout/index.js';
import { eventually } from '../../support/eventually.js';
import { createMemoryRetriever } from '../../support/memory-retriever.js';
import { createPieceTokenizer } from '../../support/piece-tokenizer.js';
import { PASSAGES } from '../../support/rollout-kit.js';
import { createScriptedGenerator, scriptOf } from '../../support/scripted-generator.js';

/** @param fails  by query */
function houseOf(
  fails: (query: string) => boolean,
  searchPausesMs: readonly number[] = [1, 1, 1],
  beforeToken: () => Promise<void> | void = () => {},
) {
  const tokenizer = createPieceTokenizer();
  const memory = createMemoryRetriever({ passages: PASSAGES });
  const retriever: Retriever = {
    ...memory,
    async search(queries, k, options) {
      if (queries.some(fails)) throw new RetrievalError('the engine is away');
      return memory.search(queries, k, options);
    },
  };
  const generator = createScriptedGenerator({
    tokenizer,
    policy: scriptOf(tokenizer, ['<search>capital of Portugal</search>', '<answer>Lisbon</answer>']),
    eosTokenIds: [tokenizer.endId],
    beforeToken,
  });
  const config = { ...configSchema.parse({}).rollout, retrieverRetries: 0 };
  return {
    generator,
    priority: createPriority(generator, { idleMs: 0, patienceMs: null }),
    parts: { retriever, tokenizer, config, prompts: loadPrompts({ prompt: 'search-r1' }) },
    topK: 1,
    unaskable: new Unaskable(),
    onNote: () => {},
    outages: new SearchOutages(),
    searchPausesMs,
  };
}

const job: IdleJob = {
  id: 'a',
  groupId: null,
  messages: [{ role: 'user', content: 'What is the capital of Portugal?' }],
  seed: 1,
  adapter: null,
  temperature: 1,
};
const never = new AbortController().signal;

test('a search that fails for a while is made again, and the record knows nothing of it', async () => {
  let left = 3;
  const [record] = await rollIdle(
    houseOf(() => left-- > 0),
    [job],
    never,
  );
  expect(record?.searches).toMatchObject([{ query: 'capital of Portugal', error: null }]);
  expect(record?.searches[0]?.passageIds).toHaveLength(1);
  expect(record?.observations.map(({ kind }) => kind)).toEqual(['search']);
});

test('where searches do not come back there is no record', async () => {
  const made: unknown[] = [];
  const rolled = rollIdle(
    houseOf(() => true),
    [job],
    never,
    (_done, _at, record) => made.push(record),
  );
  await expect(rolled).rejects.toThrow(SearchesAwayError);
  await expect(rolled).rejects.toThrow('"capital of Portugal"');
  expect(made).toEqual([]);
});

test('a query that is refused while others are answered is the policy’s own doing, and stands in nobody’s way', async () => {
  const [record] = await rollIdle(
    houseOf((query) => query === 'capital of Portugal', []),
    [job],
    never,
  );
  expect(record?.searches).toMatchObject([{ query: 'capital of Portugal', error: 'the engine is away' }]);
});

test('from the first try that fails it is known what is waited for and since when, until all that wait are answered', async () => {
  let isAway = true;
  const house = houseOf(() => isAway, [20, 20, 60_000]);
  const { outages } = house;
  expect([outages.waitsFor, outages.since]).toEqual([null, null]);
  const before = Date.now();
  const rolled = rollIdle(house, [job, { ...job, id: 'b' }], never);
  await eventually(() => outages.waitsFor !== null);
  const { waitsFor, since } = outages;
  expect(waitsFor).toBe('searches fail: the search for "capital of Portugal" failed: the engine is away');
  expect(since).toBeGreaterThanOrEqual(before);
  // What another one is told from memory says nothing of these.
  await outages.hear(createMemoryRetriever({ passages: PASSAGES })).retriever?.search(['Portugal'], 1);
  expect([outages.waitsFor, outages.since]).toEqual([waitsFor, since]);
  isAway = false;
  await rolled;
  expect([outages.waitsFor, outages.since]).toEqual([null, null]);
  expect(outages.answeredAt).toBeGreaterThan(0);
});

test('a round that gives up leaves the time at which searches began to fail to the next', async () => {
  const house = houseOf(() => true, []);
  await expect(rollIdle(house, [job], never)).rejects.toThrow(SearchesAwayError);
  const { since, waitsFor } = house.outages;
  expect([typeof since, waitsFor]).toEqual(['number', null]);
  await expect(rollIdle(house, [job], never)).rejects.toThrow(SearchesAwayError);
  expect(house.outages.since).toBe(since);
});

test('waiting for searches ends with the round', async () => {
  const stop = new AbortController();
  const house = houseOf(() => true, [60_000]);
  const rolled = rollIdle(house, [job], stop.signal);
  setTimeout(() => stop.abort(), 20);
  await expect(rolled).rejects.toThrow('cancelled');
  expect(house.outages.waitsFor).toBeNull();
});

test('a rollout that a user sent away is begun anew with the same seed, and nothing of it is lost', async () => {
  const undisturbed = houseOf(() => false);
  const [expected] = await rollIdle(undisturbed, [job], never);
  // In the first turn, in the one after a search, and before all that while it waits for a slot.
  const visits = [2, 18];
  let sampled = 0;
  const house = houseOf(
    () => false,
    [],
    async () => {
      if (visits.includes(++sampled)) (await house.priority.users.open()).close();
    },
  );
  const { open } = house.generator;
  jest.spyOn(house.generator, 'open').mockImplementationOnce(async (options) => {
    (await house.priority.users.open()).close();
    return open.call(house.generator, options);
  });
  const done: number[] = [];
  const [record] = await rollIdle(house, [job], never, (count) => done.push(count));
  expect(house.priority.yields).toBe(3);
  const timeless = (made: typeof record) => ({
    ...made,
    createdAt: 0,
    searches: made?.searches.map((search) => ({ ...search, durationMs: 0 })),
  });
  expect(timeless(record)).toEqual(timeless(expected));
  expect(done).toEqual([1]);
  // One turn, two, and two again: each try from the same seed on.
  expect(house.generator.turns).toHaveLength(5);
  const seeds = ({ generator }: typeof house) => generator.opened.flatMap(({ seed }) => seed ?? []);
  expect(seeds(undisturbed)).toHaveLength(1);
  expect(seeds(house)).toEqual(Array(3).fill(seeds(undisturbed)[0]));
});
