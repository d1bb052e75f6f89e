import fc from 'fast-check';
import { loadConfig } from '../../../src/config/index.js';
import { checkTokenIds, choiceSeed, rolloutRequestOf } from '../../../src/server/openai/rollout-request.js';
import { parseChatBody } from '../../../src/server/openai/schema/chat.js';
import { ENGINE_INFO } from '../../support/test-server.js';

const config = loadConfig({ env: {} });

function request(fields: object, choice = 0) {
  const body = parseChatBody({ model: 'searchloop', messages: [{ role: 'user', content: 'q' }], ...fields });
  const target = { method: 'rag' as const, adapter: 'tuned', adapterVersion: 'v' };
  const frame = {
    body,
    target,
    info: ENGINE_INFO,
    rollout: config.rollout,
    id: 'chatcmpl-1',
  };
  return rolloutRequestOf(frame, choice);
}

test('defaults: the raw policy, greedy, answer forced', () => {
  expect(request({})).toMatchObject({
    method: 'rag',
    adapter: 'tuned',
    expectedVersion: 'v',
    sampling: {
      temperature: 0,
      topP: 1,
      topK: 0,
      minP: 0,
      frequencyPenalty: 0,
      presencePenalty: 0,
      repetitionPenalty: 1,
      logitBias: {},
    },
    maxTokens: undefined,
    stop: undefined,
    seed: undefined,
    topLogprobs: undefined,
    forceAnswer: true,
    id: 'chatcmpl-1',
  });
});

test('every field arrives', () => {
  const made = request({
    temperature: 0.7,
    top_p: 0.9,
    top_k: 40,
    min_p: 0.05,
    frequency_penalty: 0.1,
    presence_penalty: -0.1,
    repetition_penalty: 1.1,
    logit_bias: { '5': -100 },
    stop: 'END',
    stop_token_ids: [3],
    ignore_eos: true,
    seed: 9,
    logprobs: true,
    top_logprobs: 4,
    searchloop: { top_k: 5, action_budget: 2, force_answer: false },
  });
  expect(made).toMatchObject({
    sampling: {
      temperature: 0.7,
      topP: 0.9,
      topK: 40,
      minP: 0.05,
      frequencyPenalty: 0.1,
      presencePenalty: -0.1,
      repetitionPenalty: 1.1,
      logitBias: { 5: -100 },
    },
    stop: ['END'],
    stopTokenIds: [3],
    ignoreEos: true,
    seed: 9,
    topLogprobs: 4,
    topK: 5,
    actionBudget: 2,
    forceAnswer: false,
  });
});

test('the smaller limit wins and none exceeds the window', () => {
  expect(request({ max_tokens: 5, max_completion_tokens: 9 }).maxTokens).toBe(5);
  expect(request({ max_completion_tokens: 5 }).maxTokens).toBe(5);
  expect(request({ max_tokens: 1e12 }).maxTokens).toBe(ENGINE_INFO.maxSequenceTokens);
});

test('edges: top_k -1 keeps all, top_p 0 keeps one, several choices are warm and grouped', () => {
  expect(request({ top_k: -1 }).sampling.topK).toBe(0);
  expect(request({ top_p: 0 }).sampling.topP).toBeGreaterThan(0);
  expect(request({ n: 2 }, 1)).toMatchObject({
    id: 'chatcmpl-1-1',
    groupId: 'chatcmpl-1',
    sampling: { temperature: 1 },
  });
  expect(request({ n: 2, temperature: 0 }).sampling.temperature).toBe(0);
});

test('a temperature too small to divide by is 0', () => {
  const made = [1e-310, 1e-8, 1e-6, 0.01].map((temperature) => request({ temperature }).sampling.temperature);
  expect(made).toEqual([0, 0, 1e-6, 0.01]);
});

test('token ids outside the vocabulary are refused', () => {
  const body = (fields: object) =>
    parseChatBody({ model: 'm', messages: [{ role: 'user', content: 'q' }], ...fields });
  expect(() => checkTokenIds(body({ logit_bias: { 256: 1 } }), ENGINE_INFO)).toThrow(
    expect.objectContaining({ param: 'logit_bias' }),
  );
  expect(() => checkTokenIds(body({ stop_token_ids: [1, 300] }), ENGINE_INFO)).toThrow(
    expect.objectContaining({ param: 'stop_token_ids' }),
  );
  expect(() =>
    checkTokenIds(body({ logit_bias: { 255: 1 }, stop_token_ids: [0] }), ENGINE_INFO),
  ).not.toThrow();
});

test('seeds: 32 bits, the same for the same input, distinct for all choices', () => {
  expect(choiceSeed(7, 0)).toBe(7);
  fc.assert(
    fc.property(fc.oneof(fc.maxSafeInteger(), fc.constantFrom(-(2 ** 63), 2 ** 63, 2 ** 32)), (seed) => {
      const seeds = Array.from({ length: 128 }, (_, choice) => choiceSeed(seed, choice));
      expect(new Set(seeds).size).toBe(128);
      expect(seeds.every((item) => Number.isInteger(item) && item >= 0 && item < 2 ** 32)).toBe(true);
      expect(choiceSeed(seed, 3)).toBe(seeds[3]);
    }),
  );
});
