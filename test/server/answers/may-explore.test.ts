import { mayExplore } from '../../../src/server/answers/traffic.js';
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
