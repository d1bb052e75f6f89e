import type { RolloutRequest } from '../../../src/rollout/index.js';
import { explored, mayExplore } from '../../../src/server/answers/traffic.js';
import type { ModelTarget } from '../../../src/server/openai/model-name.js';
import type { ChatBody } from '../../../src/server/openai/schema/chat.js';

const target = { method: 'search-r1' } as ModelTarget;

test('a request is explored where it says nothing of sampling, nor of where the answer ends', () => {
  const may = (changes: object, to = target): boolean =>
    mayExplore({ logit_bias: {}, ...changes } as ChatBody, to);
  expect(may({})).toBe(true);
  expect(may({ n: 1, temperature: null, ignore_eos: false })).toBe(true);
  for (const changes of [
    { temperature: 1 },
    { n: 2 },
    { ignore_eos: true },
    { logit_bias: { 5: -1 } },
    { seed: 1 },
  ])
    expect(may(changes)).toBe(false);
  expect(may({}, { method: 'rag' } as ModelTarget)).toBe(false);
});

test('what is explored is sampled from the raw policy and marked; what is not kept is not explored', () => {
  const sampling = { temperature: 0, topP: 0.9, topK: 5, minP: 0.1, repetitionPenalty: 1 };
  const keeping = { notes: { source: 'serve', keyId: 'key' }, feedback: null };
  const request = { id: 'a', sampling, keeping } as unknown as RolloutRequest;
  expect(explored(request)).toEqual({
    id: 'a',
    sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1 },
    keeping: { notes: { source: 'explore', keyId: 'key' }, feedback: null },
  });
  const { keeping: _, ...unsaid } = request;
  for (const forgotten of [{ ...request, keeping: null }, unsaid])
    expect(explored(forgotten)).toBe(forgotten);
});
