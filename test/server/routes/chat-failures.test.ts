// How POST /v1/chat/completions fails and waits: with its own status before the first event, in band after it.

import { CancelledError, ContextLengthError, NonFiniteError, OverloadedError } from '../../../src/errors.js';
import { eventually } from '../../support/eventually.js';
import type { Script } from '../../support/scripted-runner.js';
import {
  ENGINE_INFO,
  post,
  QUESTION,
  scriptedPolicy,
  sseData,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from '../../support/test-server.js';

let server: TestServer;
const start = async (options: TestServerOptions = {}) => {
  server = await startTestServer(options);
};
afterEach(() => server.close());

const ask = (fields: object = {}, init?: RequestInit) =>
  post(`${server.url}/v1/chat/completions`, { ...QUESTION, ...fields }, init);

describe('failures', () => {
  const failing =
    (error: unknown): Script =>
    () => [{ fail: error }];

  test.each([
    [new OverloadedError('full', 1500), 429, 'queue_full'],
    [new ContextLengthError('900 tokens, limit 512'), 400, 'context_length_exceeded'],
    [new NonFiniteError('NaN'), 500, 'non_finite'],
    [new TypeError('inside'), 500, 'internal_error'],
    [new CancelledError(), 503, 'cancelled'],
  ])('before the first event, streamed or not: %s', async (error, status, code) => {
    await start({ script: failing(error) });
    for (const stream of [false, true]) {
      const response = await ask({ stream });
      expect(response.status).toBe(status);
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(await response.json()).toMatchObject({ error: { code } });
    }
  });

  test('in mid-stream: an error event without choices, the end marker, no finish reason', async () => {
    await start({ script: () => [{ answer: 'abc' }, { fail: new NonFiniteError('logits were NaN') }] });
    const response = await ask({ stream: true });
    const data = sseData(await response.text());
    expect(response.status).toBe(200);
    expect(data.at(-1)).toBe('[DONE]');
    const last = JSON.parse(data.at(-2)!);
    expect(last).toEqual({
      error: { message: 'logits were NaN', type: 'server_error', param: null, code: 'non_finite' },
    });
    expect(data.slice(0, -2).every((text) => JSON.parse(text).choices[0].finish_reason === null)).toBe(true);
  });

  test('one of several choices fails: the request fails, the others stop', async () => {
    await start({
      script: (_, choice) =>
        choice === 1
          ? [{ waitMs: 10 }, { fail: new NonFiniteError('NaN') }]
          : [{ answer: 'x' }, { until: new Promise(() => {}) }],
    });
    const response = await ask({ n: 3 });
    expect(response.status).toBe(500);
    await eventually(() => server.runner.running === 0);
  });

  test('a rollout that ends without done is a failure', async () => {
    const silent = scriptedPolicy({ run: () => (async function* () {})() });
    await start({ parts: { policy: () => ({ state: 'ready', value: silent }) } });
    expect((await ask()).status).toBe(500);
    expect((await ask({ stream: true })).status).toBe(500);
  });

  test('parts that are not there: 503 with the reason, and only for methods that need them', async () => {
    await start({ parts: { index: () => ({ state: 'loading', reason: 'building' }) } });
    const response = await ask();
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('5');
    expect(await response.json()).toMatchObject({
      error: { code: 'index_loading', message: 'the index is loading: building' },
    });
    expect((await ask({ model: 'searchloop:cot' })).status).toBe(200);
    await server.close();
    await start({ parts: { policy: () => ({ state: 'broken', reason: 'no weights' }) } });
    expect(await (await ask()).json()).toMatchObject({ error: { code: 'model_loading' } });
  });

  test('a prompt over the window is refused before the stream begins', async () => {
    await start();
    const content = 'x'.repeat(ENGINE_INFO.maxSequenceTokens + 1);
    const response = await ask({ stream: true, messages: [{ role: 'user', content }] });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { code: 'context_length_exceeded', param: 'messages' },
    });
    expect(server.runner.requests).toEqual([]);
  });
});

describe('waiting', () => {
  test('no header before the first event; then comments while nothing comes', async () => {
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    await start({
      server: { streamCommentMs: 100 },
      script: () => [{ until: gate }, { answer: 'a' }, { waitMs: 350 }, { answer: 'b' }],
    });
    let answered = false;
    const response = ask({ stream: true }).then((value) => {
      answered = true;
      return value;
    });
    await eventually(() => server.runner.running === 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(answered).toBe(false);
    release();
    const text = await (await response).text();
    expect(text).toContain('\n\n: keep-alive\n\n');
    expect(text.replaceAll(': keep-alive\n\n', '')).toMatch(/^(data: [^\n]+\n\n)+$/);
  });

  test('a long wait opens the stream; a failure after it is an event', async () => {
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    await start({
      server: { streamOpenMs: 20, streamCommentMs: 100 },
      script: () => [{ until: gate }, { fail: new OverloadedError('full', 10) }],
    });
    const response = await ask({ stream: true });
    expect(response.status).toBe(200);
    release();
    const data = sseData(await response.text());
    expect(data.map((text) => (text === '[DONE]' ? text : JSON.parse(text).error.code))).toEqual([
      'queue_full',
      '[DONE]',
    ]);
  });
});
