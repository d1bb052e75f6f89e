// What is kept of a request, and in whose name its gold answers are said.

import type { RolloutRequest } from '../../../src/rollout/index.js';
import { keepingOf } from '../../../src/server/answers/keeping.js';
import type { Identity } from '../../../src/server/http/api-keys.js';
import type { ChatBody } from '../../../src/server/openai/schema/chat.js';

const store = {} as never;
const request = { id: 'answer-0', messages: [{ role: 'user', content: 'x?' }] } as unknown as RolloutRequest;
const keyOf = (...scopes: Identity['scopes'][number][]): Identity => ({ keyId: 'key-1', scopes });

function keep(body: Partial<ChatBody>, identity = keyOf('ask'), house: object = {}) {
  return keepingOf({ store, keepByDefault: true, ...house }, body as ChatBody, identity, 'answer')(request);
}
const golds = { searchloop: { golden_answers: ['Paris'] } } as Partial<ChatBody>;

test.each<[Identity['scopes'], string]>([
  [['ask', 'feedback'], 'request'],
  [['feedback'], 'request'],
  [['admin'], 'admin'],
])('gold answers in a request of a key with %j are said as %s', (scopes, role) => {
  expect(keep(golds, keyOf(...scopes))?.feedback).toEqual({
    trajectoryId: 'answer-0',
    keyId: 'key-1',
    role,
    idempotencyKey: null,
    reward: null,
    rating: null,
    goldAnswers: ['Paris'],
    preferredOver: null,
    comment: null,
  });
});

test('a key that may only ask gives none, and nobody does to an answer that is not kept', () => {
  expect(() => keep(golds)).toThrow(/feedback/);
  const may = keyOf('ask', 'feedback');
  expect(() => keep({ ...golds, store: false }, may)).toThrow('this answer is not kept');
  expect(() => keep(golds, may, { store: null })).toThrow('this answer is not kept');
});

test('kept is what the request wishes, else what the server does, and nothing without a store', () => {
  expect(keep({})).toMatchObject({
    notes: { source: 'serve', askedToStore: false, keyId: 'key-1' },
    feedback: null,
  });
  expect(keep({ store: true }, undefined, { keepByDefault: false })).toMatchObject({
    notes: { askedToStore: true },
  });
  expect(keep({ store: false })).toBeNull();
  expect(keep({}, undefined, { keepByDefault: false })).toBeNull();
  expect(keep({ store: true }, undefined, { store: null })).toBeNull();
});
