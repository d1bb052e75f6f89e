// The loop over the real engine: a tiny model with random weights, in its worker thread.

import { configSchema } from '../../src/config/index.js';
import type { Engine } from '../../src/engine/index.js';
import {
  createRolloutRunner,
  loadPrompts,
  type RolloutEvent,
  type RolloutRequest,
} from '../../src/rollout/index.js';
import { createTokenizer } from '../../src/tokenizer/index.js';
import { audit } from '../../src/trajectory/index.js';
import { startEngine, tinyModel } from '../engine/support/tiny-models.js';
import { createMemoryRetriever } from '../support/memory-retriever.js';
import { answerText, collect, doneOf, joined, PASSAGES, RAW_POLICY } from '../support/rollout-kit.js';

async function runnerOver(engine: Engine) {
  const tokenizer = createTokenizer((await tinyModel()).tokenizer);
  const config = configSchema.parse({ rollout: { turnTokens: 24, observationTokens: 200 } }).rollout;
  const defaults = loadPrompts(config);
  const instruction = 'Which? {question}';
  const observation = {
    ...defaults.searchR1.observation,
    corrective: '\n<search> <answer>\n',
    failure: '\n<information>no\n</information>\n',
    budget: '\n',
  };
  const runner = createRolloutRunner({
    generator: engine,
    retriever: createMemoryRetriever({ passages: PASSAGES }),
    tokenizer,
    config,
    prompts: {
      ...defaults,
      searchR1: { ...defaults.searchR1, instruction, observation },
      cot: { ...defaults.cot, instruction },
    },
  });
  const request = (changes: Partial<RolloutRequest> = {}): RolloutRequest => ({
    method: 'search-r1',
    messages: [{ role: 'user', content: 'Who measured the river?' }],
    sampling: RAW_POLICY,
    seed: 3,
    forceAnswer: true,
    ...changes,
  });
  return { tokenizer, run: (changes?: Partial<RolloutRequest>) => runner.run(request(changes)) };
}

const outline = (events: readonly RolloutEvent[]) => {
  const { answer, finish, record, usage } = doneOf(events);
  // What was shared with others is the one thing that depends on them.
  const { cachedTokens: _, ...own } = usage;
  return { events: joined(events), answer, finish, ids: record.tokenIds, usage: own };
};

test.each(['search-r1', 'rag', 'cot', 'direct', 'chat'] as const)(
  '%s: sound records, no slot left behind',
  async (method) => {
    const engine = await startEngine({ maxSequenceTokens: 512 });
    const { tokenizer, run } = await runnerOver(engine);
    for (const seed of [1, 2, 3]) {
      const events = await collect(run({ method, seed, maxTokens: 100 }));
      const { record, answer, usage } = doneOf(events);
      expect(audit(record, tokenizer)).toEqual([]);
      expect(answerText(events)).toBe(answer);
      expect(usage.completionTokens).toBe(record.lossMask.reduce<number>((sum, mask) => sum + mask, 0));
      expect(usage.completionTokens).toBeGreaterThan(0);
      expect(record.versions).toEqual([{ start: 0, end: record.tokenIds.length, adapterVersion: 'base' }]);
      expect(record.modelDigest).toBe(engine.info.modelDigest);
    }
    expect(engine.stats()).toMatchObject({ running: 0, freeSlots: 4 });
  },
);

test('a prompt that begins as an earlier one says how much of it was shared', async () => {
  const { run } = await runnerOver(await startEngine({ maxSequenceTokens: 512 }));
  const cached = async () => doneOf(await collect(run({ maxTokens: 8 }))).usage.cachedTokens;
  expect(await cached()).toBe(0);
  const again = await cached();
  expect(again).toBeGreaterThan(0);
  expect(again).toBeLessThan(59);
});

test('a seed gives the same rollout, alone or beside others', async () => {
  const engine = await startEngine({ maxSequenceTokens: 512 });
  const { run } = await runnerOver(engine);
  const alone = outline(await collect(run()));
  const seeds = [3, 4, 5, 6];
  const together = await Promise.all(seeds.map((seed) => collect(run({ seed }))));
  expect(outline(together[0] as RolloutEvent[])).toEqual(alone);
  expect(outline(together[1] as RolloutEvent[])).not.toEqual(alone);
});

test('cancelling frees the slot within a step; the record is kept and sound', async () => {
  const engine = await startEngine({ maxSequenceTokens: 512 });
  const { tokenizer, run } = await runnerOver(engine);
  const controller = new AbortController();
  const events: RolloutEvent[] = [];
  for await (const event of run({ method: 'chat', ignoreEos: true, signal: controller.signal })) {
    events.push(event);
    if (events.length === 5) controller.abort();
  }
  const { record, finish } = doneOf(events);
  expect(finish).toBe('cancelled');
  expect(audit(record, tokenizer)).toEqual([]);
  expect(record.tokenIds.length).toBeLessThan(400);
  expect(engine.stats()).toMatchObject({ running: 0, freeSlots: 4 });
});

test('a stop string of the request really stops the sampling', async () => {
  const engine = await startEngine({ maxSequenceTokens: 512 });
  const { run } = await runnerOver(engine);
  const { answer } = doneOf(await collect(run({ method: 'chat', ignoreEos: true, maxTokens: 60 })));
  const stop = answer.slice(20, 23);
  const stopped = doneOf(
    await collect(run({ method: 'chat', ignoreEos: true, maxTokens: 60, stop: [stop] })),
  );
  expect(stopped.answer).toBe(answer.slice(0, answer.indexOf(stop)));
  expect(stopped.finish).toBe('stop');
  expect(stopped.usage.completionTokens).toBeLessThan(60);
  expect(engine.stats().freeSlots).toBe(4);
});
