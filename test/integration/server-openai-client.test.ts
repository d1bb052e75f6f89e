// The official JavaScript client against the real server.

import OpenAI, {
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from 'openai';
import { NonFiniteError, OverloadedError } from '../../src/errors.js';
import { eventually } from '../support/eventually.js';
import { CACHED_TOKENS, PROMPT_TOKENS, passage, type Script } from '../support/scripted-runner.js';
import { adapter, startTestServer, type TestServer, type TestServerOptions } from '../support/test-server.js';

const PARIS = passage('12', 'Paris', 'Paris is the capital of France.', 0.9);
const searching: Script = () => [
  { think: 'I should look it up.' },
  { search: 'capital of France', passages: [PARIS] },
  { think: 'Clear.' },
  { answer: 'Paris 🫠 ok' },
  { finish: 'stop', citations: [{ passage: PARIS, start: 0, end: 11 }] },
];
const messages = [{ role: 'user' as const, content: 'capital of France?' }];

let server: TestServer;
let client: OpenAI;

async function start(options: TestServerOptions): Promise<void> {
  server = await startTestServer(options);
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'dummy', maxRetries: 0 });
}

afterEach(() => server.close());

test('create: content, reasoning, annotations, usage, finish reason, request id', async () => {
  await start({ script: searching });
  const { data, request_id } = await client.chat.completions
    .create({ model: 'searchloop', messages })
    .withResponse();
  expect(request_id).toMatch(/^req_/);
  expect(data).toMatchObject({ _request_id: request_id });
  expect(data).toMatchObject({ object: 'chat.completion', model: 'searchloop' });
  expect(data.id).toMatch(/^chatcmpl-/);
  expect(data.system_fingerprint).toMatch(/^fp_[0-9a-f]{12}$/);
  const [choice] = data.choices;
  expect(choice).toMatchObject({ index: 0, finish_reason: 'stop', logprobs: null });
  expect(choice?.message).toMatchObject({
    role: 'assistant',
    content: 'Paris 🫠 ok',
    refusal: null,
    annotations: [
      {
        type: 'url_citation',
        url_citation: { start_index: 0, end_index: 11, url: 'urn:searchloop:passage:12', title: 'Paris' },
      },
    ],
  });
  const { reasoning, reasoning_content } = choice!.message as unknown as Record<string, string>;
  expect(reasoning).toBe(reasoning_content);
  expect(reasoning).toContain('I should look it up.');
  expect(reasoning).toContain('Search: capital of France');
  expect(reasoning).toContain('[1] Paris: Paris is the capital of France.');
  const sampled = Buffer.byteLength('I should look it up.capital of FranceClear.Paris 🫠 ok');
  const injected = Buffer.byteLength(PARIS.text);
  expect(data.usage).toEqual({
    prompt_tokens: PROMPT_TOKENS + injected,
    completion_tokens: sampled,
    total_tokens: PROMPT_TOKENS + injected + sampled,
    prompt_tokens_details: { cached_tokens: CACHED_TOKENS },
    completion_tokens_details: { reasoning_tokens: sampled - Buffer.byteLength('Paris 🫠 ok') },
    searchloop: { searches: 1, injected_tokens: injected, model_version: 'base' },
  });
});

test('stream: the joined deltas and the usage equal the plain answer', async () => {
  await start({ script: searching });
  const plain = await client.chat.completions.create({ model: 'searchloop', messages });
  const stream = await client.chat.completions.create({
    model: 'searchloop',
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  let content = '';
  let reasoning = '';
  const finishes: unknown[] = [];
  const annotations: unknown[] = [];
  let usage: unknown;
  for await (const chunk of stream) {
    const delta = chunk.choices[0]?.delta as Record<string, unknown> | undefined;
    content += delta?.['content'] ?? '';
    reasoning += delta?.['reasoning_content'] ?? '';
    annotations.push(...((delta?.['annotations'] as unknown[] | undefined) ?? []));
    if (chunk.choices[0]?.finish_reason) finishes.push(chunk.choices[0].finish_reason);
    usage = chunk.usage ?? usage;
  }
  const message = plain.choices[0]?.message as unknown as Record<string, unknown>;
  expect(content).toBe(message['content']);
  expect(reasoning).toBe(message['reasoning_content']);
  expect(annotations).toEqual(message['annotations']);
  expect(finishes).toEqual(['stop']);
  expect(usage).toEqual(plain.usage);
});

test('the stream helper builds the final completion', async () => {
  await start({ script: searching });
  const runner = client.chat.completions.stream({ model: 'searchloop', messages });
  const final = await runner.finalChatCompletion();
  expect(final.choices[0]).toMatchObject({
    finish_reason: 'stop',
    message: { role: 'assistant', content: 'Paris 🫠 ok' },
  });
});

test('the stream helper joins three interleaved choices', async () => {
  await start({
    script: (_request, choice) => [{ think: 'hm' }, { answer: `choice ${choice}` }, { finish: 'length' }],
  });
  const final = await client.chat.completions
    .stream({ model: 'searchloop', messages, n: 3, stream_options: { include_usage: true } })
    .finalChatCompletion();
  expect(final.choices.map((choice) => [choice.index, choice.message.content, choice.finish_reason])).toEqual(
    [
      [0, 'choice 0', 'length'],
      [1, 'choice 1', 'length'],
      [2, 'choice 2', 'length'],
    ],
  );
  expect(final.usage).toMatchObject({
    prompt_tokens: PROMPT_TOKENS,
    completion_tokens: 3 * 'hmchoice 0'.length,
  });
});

test('several choices sample at temperature 1 with their own seeds; one choice is greedy', async () => {
  await start({});
  await client.chat.completions.create({ model: 'searchloop', messages, n: 3, seed: 5 });
  await client.chat.completions.create({ model: 'searchloop', messages, seed: 5 });
  const seeds = server.runner.requests.map((request) => request.seed);
  expect(new Set(seeds.slice(0, 3)).size).toBe(3);
  expect([seeds[0], seeds[3]]).toEqual([5, 5]);
  expect(server.runner.requests.map((request) => request.sampling.temperature)).toEqual([1, 1, 1, 0]);
});

test('logprobs: raw policy, bytes, alternatives; streamed ones join to the same list', async () => {
  await start({ script: () => [{ think: 'x' }, { answer: 'é!' }] });
  const ask = { model: 'searchloop', messages, logprobs: true, top_logprobs: 2 };
  const plain = await client.chat.completions.create(ask);
  const entries = plain.choices[0]?.logprobs?.content ?? [];
  expect(entries.map((entry) => entry.bytes)).toEqual([[0xc3], [0xa9], [0x21]]);
  expect(entries.map((entry) => [entry.logprob, entry.top_logprobs.length])).toEqual(
    Array(3).fill([-0.25, 2]),
  );
  const streamed: unknown[] = [];
  for await (const chunk of await client.chat.completions.create({ ...ask, stream: true }))
    streamed.push(...(chunk.choices[0]?.logprobs?.content ?? []));
  expect(streamed).toEqual(entries);
});

test('leaving the loop stops the rollout; another stream is not touched', async () => {
  const endless: Script = async function* (request) {
    if (request.method === 'cot') {
      for (let at = 0; at < 20; at++) yield* [{ waitMs: 2 }, { answer: 'b' }];
      return;
    }
    for (;;) yield* [{ waitMs: 1 }, { answer: 'a' }];
  } as Script;
  await start({ script: endless });
  const other = client.chat.completions.create({ model: 'searchloop:cot', messages, stream: true });
  const stream = await client.chat.completions.create({ model: 'searchloop', messages, stream: true });
  let seen = 0;
  for await (const _ of stream) if (++seen === 5) break;
  let text = '';
  for await (const chunk of await other) text += chunk.choices[0]?.delta.content ?? '';
  expect(text).toBe('b'.repeat(20));
  await eventually(() => server.runner.running === 0);
  expect([...server.runner.ends].sort()).toEqual(['done', 'stopped']);
});

test('abort of a plain request stops the rollout; aborting again or after the end is a no-op', async () => {
  await start({ script: () => [{ until: new Promise(() => {}) }] });
  const controller = new AbortController();
  const answer = client.chat.completions.create(
    { model: 'searchloop', messages },
    { signal: controller.signal },
  );
  const failed = expect(answer).rejects.toBeInstanceOf(APIUserAbortError);
  await eventually(() => server.runner.running === 1);
  controller.abort();
  controller.abort();
  await failed;
  await eventually(() => server.runner.running === 0);
  expect(server.runner.ends).toEqual(['stopped']);
});

test('models: list and retrieve, adapters too', async () => {
  await start({ engine: { listAdapters: () => [adapter('tuned', 'abcdef0123456789')] } });
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  expect(ids).toEqual([
    'searchloop',
    'searchloop:rag',
    'searchloop:cot',
    'searchloop:direct',
    'searchloop:chat',
    'searchloop@base',
    'searchloop@tuned',
  ]);
  for (const id of [...ids, 'searchloop@tuned:rag', 'searchloop@abcdef01:cot'])
    expect(await client.models.retrieve(id)).toMatchObject({ id, object: 'model', owned_by: 'searchloop' });
  await expect(client.models.retrieve('gpt-x')).rejects.toMatchObject({
    status: 404,
    code: 'model_not_found',
  });
});

test('error classes', async () => {
  await start({
    server: { apiKeys: ['right'], corsOrigins: ['https://app.example'] },
    script: (request) => [
      {
        fail:
          request.method === 'cot'
            ? new NonFiniteError('logits were NaN')
            : new OverloadedError('full', 1500),
      },
    ],
  });
  const good = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'right', maxRetries: 0 });
  const ask = (api: OpenAI, body: object) =>
    api.chat.completions.create({ model: 'searchloop', messages, ...body });
  await expect(ask(client, {})).rejects.toBeInstanceOf(AuthenticationError);
  await expect(ask(good, { temperature: 3 })).rejects.toBeInstanceOf(BadRequestError);
  await expect(ask(good, { temperature: 3 })).rejects.toMatchObject({
    status: 400,
    param: 'temperature',
    type: 'invalid_request_error',
    code: null,
    requestID: expect.stringMatching(/^req_/),
  });
  await expect(ask(good, { model: 'gpt-x' })).rejects.toBeInstanceOf(NotFoundError);
  await expect(ask(good, {})).rejects.toBeInstanceOf(RateLimitError);
  await expect(ask(good, { model: 'searchloop:cot' })).rejects.toBeInstanceOf(InternalServerError);
  const foreign = good.withOptions({ defaultHeaders: { origin: 'https://evil.example' } });
  await expect(ask(foreign, {})).rejects.toBeInstanceOf(PermissionDeniedError);
});

test('a 429 is retried after retry-after-ms', async () => {
  let tries = 0;
  await start({
    script: () => (++tries < 3 ? [{ fail: new OverloadedError('full', 20) }] : [{ answer: 'ok' }]),
  });
  const retrying = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'x', maxRetries: 2 });
  const timers = jest.spyOn(globalThis, 'setTimeout');
  const answer = await retrying.chat.completions.create({ model: 'searchloop', messages });
  const waits = timers.mock.calls.map(([, wait]) => wait);
  timers.mockRestore();
  expect(answer.choices[0]?.message.content).toBe('ok');
  expect(tries).toBe(3);
  expect(waits.filter((wait) => wait === 20)).toHaveLength(2);
});

test('a failure in mid-stream throws APIError and never looks like an end', async () => {
  await start({ script: () => [{ answer: 'abc' }, { fail: new NonFiniteError('logits were NaN') }] });
  const stream = await client.chat.completions.create({ model: 'searchloop', messages, stream: true });
  let text = '';
  const finishes: unknown[] = [];
  const read = async () => {
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      finishes.push(chunk.choices[0]?.finish_reason);
    }
  };
  await expect(read()).rejects.toThrow(APIError);
  expect(text).toBe('abc');
  expect(finishes.filter(Boolean)).toEqual([]);
});

test('a failure before the first event of a stream has its own status', async () => {
  await start({ script: () => [{ fail: new OverloadedError('full', 1500) }] });
  const stream = client.chat.completions.create({ model: 'searchloop', messages, stream: true });
  const error = await stream.then(
    () => null,
    (thrown: APIError) => thrown,
  );
  expect(error).toBeInstanceOf(RateLimitError);
  expect(error?.headers?.get('retry-after-ms')).toBe('1500');
  expect(error?.headers?.get('retry-after')).toBe('2');
});
