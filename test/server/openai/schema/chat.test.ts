import { RequestError } from '../../../../src/server/openai/request-error.js';
import { parseChatBody } from '../../../../src/server/openai/schema/chat.js';

const user = { role: 'user', content: 'q' };
const base = { model: 'searchloop', messages: [user] };

function fault(body: unknown): { code: string; param: string | null; message: string } {
  try {
    parseChatBody(body);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { code: error.code, param: error.param, message: error.message };
  }
  throw new Error('was accepted');
}

test.each<[unknown, string | null]>([
  [null, null],
  [[], null],
  ['text', null],
  [{ messages: [user] }, 'model'],
  [{ ...base, model: '' }, 'model'],
  [{ ...base, model: 5 }, 'model'],
  [{ model: 'searchloop' }, 'messages'],
  [{ ...base, messages: [] }, 'messages'],
  [{ ...base, messages: 'hi' }, 'messages'],
  [{ ...base, messages: [{ role: 'system', content: 'x' }] }, 'messages'],
  [{ ...base, messages: ['hi'] }, 'messages[0]'],
  [{ ...base, messages: [user, null] }, 'messages[1]'],
  [{ ...base, messages: [{ role: 'banana', content: 'x' }] }, 'messages[0].role'],
  [{ ...base, messages: [{ content: 'x' }] }, 'messages[0].role'],
  [{ ...base, messages: [{ role: 'user' }] }, 'messages[0].content'],
  [{ ...base, messages: [{ role: 'user', content: 5 }] }, 'messages[0].content'],
  [{ ...base, messages: [{ role: 'user', content: [] }] }, 'messages[0].content'],
  [{ ...base, messages: [{ role: 'user', content: [5] }] }, 'messages[0].content[0]'],
  [{ ...base, messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'messages[0].content[0].text'],
  [{ ...base, messages: [{ role: 'user', content: [{ type: 'x' }] }] }, 'messages[0].content[0].type'],
  [{ ...base, messages: [{ role: 'user', content: [{}] }] }, 'messages[0].content[0].type'],
  [
    { ...base, messages: [{ role: 'user', content: [{ type: 'refusal', refusal: 'x' }] }] },
    'messages[0].content[0].type',
  ],
  [{ ...base, messages: [{ role: 'assistant', content: null }, user] }, 'messages[0].content'],
  [{ ...base, messages: [user, { role: 'tool', content: 'x' }] }, 'messages[1].tool_call_id'],
  [{ ...base, messages: [user, { role: 'function', content: 'x' }] }, 'messages[1].name'],
  [{ ...base, messages: [{ role: 'assistant', tool_calls: [{ id: 5 }] }] }, 'messages[0].tool_calls[0].id'],
  [{ ...base, temperature: 2.1 }, 'temperature'],
  [{ ...base, temperature: -0.1 }, 'temperature'],
  [{ ...base, temperature: '1' }, 'temperature'],
  [{ ...base, top_p: 1.1 }, 'top_p'],
  [{ ...base, frequency_penalty: 2.5 }, 'frequency_penalty'],
  [{ ...base, presence_penalty: -2.5 }, 'presence_penalty'],
  [{ ...base, max_tokens: 0 }, 'max_tokens'],
  [{ ...base, max_tokens: -1 }, 'max_tokens'],
  [{ ...base, max_completion_tokens: 1.5 }, 'max_completion_tokens'],
  [{ ...base, n: 0 }, 'n'],
  [{ ...base, n: 129 }, 'n'],
  [{ ...base, seed: 1.5 }, 'seed'],
  [{ ...base, seed: 2 ** 64 }, 'seed'],
  [{ ...base, stop: '' }, 'stop'],
  [{ ...base, stop: ['a', ''] }, 'stop'],
  [{ ...base, stop: [5] }, 'stop'],
  [{ ...base, stop: Array(17).fill('a') }, 'stop'],
  [{ ...base, logit_bias: { a: 1 } }, 'logit_bias'],
  [{ ...base, logit_bias: { 5: 101 } }, 'logit_bias'],
  [{ ...base, logit_bias: [1] }, 'logit_bias'],
  [{ ...base, logprobs: 5 }, 'logprobs'],
  [{ ...base, top_logprobs: 21, logprobs: true }, 'top_logprobs'],
  [{ ...base, top_logprobs: 2 }, 'top_logprobs'],
  [{ ...base, stream: 'yes' }, 'stream'],
  [{ ...base, stream_options: { include_usage: 'yes' } }, 'stream_options.include_usage'],
  [{ ...base, top_k: -2 }, 'top_k'],
  [{ ...base, min_p: 1.5 }, 'min_p'],
  [{ ...base, repetition_penalty: 0 }, 'repetition_penalty'],
  [{ ...base, repetition_penalty: 1e-40 }, 'repetition_penalty'],
  [{ ...base, stop_token_ids: [-1] }, 'stop_token_ids[0]'],
  [{ ...base, ignore_eos: 'no' }, 'ignore_eos'],
  [{ ...base, response_format: 'json' }, 'response_format'],
  [{ ...base, response_format: {} }, 'response_format.type'],
  [{ ...base, response_format: { type: 'json_schema', schema: {} } }, 'response_format.json_schema'],
  [{ ...base, tools: 'x' }, 'tools'],
  [{ ...base, searchloop: { top_k: 0 } }, 'searchloop.top_k'],
  [{ ...base, searchloop: { action_budget: 65 } }, 'searchloop.action_budget'],
])('invalid: %j', (body, param) => {
  expect(fault(body)).toMatchObject({ code: 'invalid_request', param });
});

const tool = { type: 'function', function: { name: 'f', parameters: {} } };

test.each<[unknown, string]>([
  [{ ...base, tools: [tool] }, 'tools'],
  [{ ...base, tools: [tool], tool_choice: 'auto' }, 'tools'],
  [{ ...base, tool_choice: 'required' }, 'tool_choice'],
  [{ ...base, functions: [{ name: 'f' }] }, 'functions'],
  [{ ...base, response_format: { type: 'json_object' } }, 'response_format'],
  [
    { ...base, response_format: { type: 'json_schema', json_schema: { name: 'x', schema: {} } } },
    'response_format',
  ],
  [{ ...base, prompt_logprobs: 1 }, 'prompt_logprobs'],
  [{ ...base, guided_json: {} }, 'guided_json'],
  [{ ...base, modalities: ['text', 'audio'] }, 'modalities'],
  [{ ...base, searchloop: { foo: 1 } }, 'searchloop.foo'],
  [
    { ...base, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] },
    'messages[0].content[0].type',
  ],
])('unsupported, never ignored: %j', (body, param) => {
  expect(fault(body)).toMatchObject({ code: 'unsupported_parameter', param });
});

test('unknown and newer fields are dropped', () => {
  const body = parseChatBody({
    ...base,
    store: true,
    metadata: { a: 'b' },
    service_tier: 'auto',
    verbosity: 'low',
    prompt_cache_key: 'k',
    safety_identifier: 's',
    reasoning_effort: 'high',
    web_search_options: {},
    parallel_tool_calls: true,
    modalities: ['text'],
    foo: 1,
  });
  expect(body).not.toHaveProperty('foo');
  expect(body.messages).toEqual([user]);
});

test('null is absent, in every optional field', () => {
  const names =
    `max_tokens max_completion_tokens temperature top_p frequency_penalty presence_penalty stop seed n logit_bias
    logprobs top_logprobs stream stream_options reasoning_effort top_k min_p repetition_penalty stop_token_ids ignore_eos
    return_token_ids searchloop tools tool_choice functions function_call response_format modalities audio`.split(
      /\s+/,
    );
  const nulls = Object.fromEntries(names.map((name) => [name, null]));
  expect(parseChatBody({ ...base, ...nulls })).toEqual(parseChatBody(base));
});

test('tools that may not be called, and no tools at all, are accepted', () => {
  expect(() => parseChatBody({ ...base, tools: [tool], tool_choice: 'none' })).not.toThrow();
  expect(() => parseChatBody({ ...base, tools: [], tool_choice: 'auto' })).not.toThrow();
  expect(() => parseChatBody({ ...base, response_format: { type: 'text' } })).not.toThrow();
});

test('developer counts as system; system texts are merged in order at the front', () => {
  const roles = (...messages: object[]) => parseChatBody({ ...base, messages }).messages;
  const system = (content: string) => ({ role: 'system', content });
  const developer = (content: string) => ({ role: 'developer', content });
  expect(roles(developer('a'), user)).toEqual([system('a'), user]);
  expect(roles(system('a'), developer('b'), user)).toEqual([system('a\n\nb'), user]);
  expect(roles(user, developer('b'))).toEqual([system('b'), user]);
});

test('text parts are joined, in every role', () => {
  const parts = (...texts: string[]) => texts.map((text) => ({ type: 'text', text }));
  const { messages } = parseChatBody({
    ...base,
    messages: [
      { role: 'system', content: parts('be ', 'brief') },
      { role: 'user', content: parts('a', 'b') },
      { role: 'assistant', content: [...parts('c'), { type: 'refusal', refusal: 'd' }] },
      { role: 'tool', tool_call_id: 'call_1', content: parts('e', 'f') },
    ],
  });
  expect(messages).toEqual([
    { role: 'system', content: 'be brief' },
    { role: 'user', content: 'ab' },
    { role: 'assistant', content: 'cd' },
    { role: 'tool', content: 'ef' },
  ]);
});

test('what clients send back of earlier answers is accepted; reasoning is dropped, calls become text', () => {
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } };
  const { messages } = parseChatBody({
    ...base,
    messages: [
      {
        role: 'assistant',
        content: 'x',
        reasoning_content: 'secret',
        annotations: [],
        audio: null,
        name: 'bot',
      },
      { role: 'assistant', content: null, tool_calls: [call], refusal: null },
      { role: 'function', name: 'f', content: 'y' },
      user,
    ],
  });
  expect(messages.map((message) => [message.role, message.content])).toEqual([
    ['assistant', 'x'],
    ['assistant', 'Called f with {"a":1}'],
    ['tool', 'y'],
    ['user', 'q'],
  ]);
});

test('half a character becomes U+FFFD wherever text goes on', () => {
  const { messages, stop } = parseChatBody({
    ...base,
    stop: ['\ud800'],
    messages: [
      { role: 'user', content: 'a\ud800b' },
      { role: 'user', content: [{ type: 'text', text: '\udc00' }] },
    ],
  });
  expect([messages[0]?.content, messages[1]?.content, stop]).toEqual(['a\ufffdb', '\ufffd', ['\ufffd']]);
});

test('a fault of any size makes a small error', () => {
  const huge = 'x'.repeat(1_000_000);
  for (const body of [
    { ...base, messages: Array(9000).fill({ role: huge.slice(0, 50), content: 'x' }) },
    { ...base, temperature: huge },
    { ...base, messages: [{ role: 'user', content: [{ type: huge }] }] },
    { ...base, searchloop: { [huge]: 1 } },
    { ...base, tool_choice: { [huge]: huge } },
    { ...base, response_format: { type: huge } },
    { ...base, stop: Array(100_000).fill(5) },
    { ...base, messages: Array(20_000).fill({}) },
  ])
    expect(fault(body).message.length).toBeLessThan(400);
});
