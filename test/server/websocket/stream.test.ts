// GET /v1/stream with the `ws` client.

import { createConnection } from 'node:net';
import { WebSocket } from 'ws';
import { NonFiniteError } from '../../../src/errors.js';
import { eventually } from '../../support/eventually.js';
import { passage, type Script } from '../../support/scripted-runner.js';
import {
  post,
  QUESTION,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from '../../support/test-server.js';

type Frame = { id: string | null; type: string } & Record<string, unknown>;

let server: TestServer;
const sockets: WebSocket[] = [];

const start = async (options: TestServerOptions = {}) => {
  server = await startTestServer(options);
};
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  await server.close();
});

const address = () => `${server.url.replace('http', 'ws')}/v1/stream`;

async function open(protocols: string[] = [], options: object = {}) {
  const socket = new WebSocket(address(), protocols, options);
  sockets.push(socket);
  const frames: Frame[] = [];
  socket.on('message', (data) => frames.push(JSON.parse(String(data)) as Frame));
  socket.on('error', () => {});
  await new Promise((resolve, reject) => {
    socket.on('open', resolve);
    socket.on('unexpected-response', (_request, response) => reject(response));
  });
  const send = (value: unknown) => socket.send(typeof value === 'string' ? value : JSON.stringify(value));
  return {
    socket,
    frames,
    send,
    request: (id: string, fields: object = {}) =>
      send({ type: 'request', id, body: { ...QUESTION, ...fields } }),
    of: (id: string) => frames.filter((frame) => frame.id === id),
    ended: (id: string) =>
      eventually(() =>
        frames.some((frame) => frame.id === id && ['done', 'error', 'cancelled'].includes(frame.type)),
      ),
  };
}

const PARIS = passage('12', 'Paris', 'Paris is the capital of France.');
const searching: Script = () => [
  { think: 'hm' },
  { search: 'paris', passages: [PARIS] },
  { answer: 'ok 🫠' },
  { finish: 'stop', citations: [{ passage: PARIS, start: 0, end: 2 }] },
];
const endless: Script = async function* () {
  for (;;) yield* [{ waitMs: 1 }, { answer: 'a' }];
} as Script;

test('events of one request, then the whole completion', async () => {
  await start({ script: searching });
  const client = await open();
  client.request('r1', { stream: true });
  await client.ended('r1');
  const events = client.of('r1');
  expect(events.map((event) => event.type)).toEqual([
    'created',
    'reasoning.delta',
    'search.query',
    'search.results',
    ...Array(4).fill('answer.delta'),
    'done',
  ]);
  expect(events[0]).toMatchObject({
    response: { id: expect.stringMatching(/^chatcmpl-/), model: 'searchloop' },
  });
  expect(events[2]).toEqual({ id: 'r1', type: 'search.query', choice: 0, index: 0, query: 'paris' });
  expect(events[3]).toMatchObject({ choice: 0, passages: [PARIS], error: null });
  expect(events.map((event) => (event.type === 'answer.delta' ? event['text'] : '')).join('')).toBe('ok 🫠');
  const plain = (await (await post(`${server.url}/v1/chat/completions`, QUESTION)).json()) as object;
  const response = events.at(-1)!['response'] as object;
  expect({ ...response, id: '', created: 0 }).toEqual({ ...plain, id: '', created: 0 });
});

test('log-probabilities come with the text they belong to', async () => {
  await start({ script: () => [{ answer: 'é' }] });
  const client = await open();
  client.request('r', { logprobs: true });
  await client.ended('r');
  const deltas = client.of('r').filter((event) => event.type === 'answer.delta');
  expect(deltas.map((event) => [event['text'], (event['logprobs'] as unknown[]).length])).toEqual([
    ['', 1],
    ['é', 1],
  ]);
});

test('several requests on one socket; cancel ends one and leaves the others', async () => {
  await start({
    script: (request, choice) => (request.seed === 1 ? endless(request, choice) : searching(request, choice)),
  });
  const client = await open();
  client.request('endless', { seed: 1 });
  client.request('other', { n: 2 });
  await eventually(() => client.of('endless').length > 5);
  client.send({ type: 'cancel', id: 'endless' });
  client.send({ type: 'cancel', id: 'endless' });
  client.send({ type: 'cancel', id: 'never was' });
  await Promise.all([client.ended('endless'), client.ended('other')]);
  expect(client.of('endless').at(-1)).toEqual({ id: 'endless', type: 'cancelled' });
  expect(client.of('other').at(-1)).toMatchObject({ type: 'done' });
  const choices = client.of('other').filter((event) => event.type === 'answer.delta');
  expect(new Set(choices.map((event) => event['choice']))).toEqual(new Set([0, 1]));
  await eventually(() => server.runner.running === 0);
  client.send({ type: 'cancel', id: 'other' });
  client.request('endless');
  await eventually(() => client.of('endless').at(-1)?.type === 'done');
  const ends = client.frames.filter((frame) => ['done', 'error', 'cancelled'].includes(frame.type));
  expect(ends).toHaveLength(3);
});

test('a cancel right behind its request finds it', async () => {
  await start({ script: endless });
  const client = await open();
  const padding = 'x'.repeat(100_000);
  client.request('big', { metadata: { padding } });
  client.send({ type: 'cancel', id: 'big' });
  await client.ended('big');
  expect(client.of('big').at(-1)).toEqual({ id: 'big', type: 'cancelled' });
});

test('bad frames are answered and hurt nothing', async () => {
  await start({ script: searching });
  const client = await open();
  const bad = [
    '',
    'no json',
    '{',
    'null',
    '5',
    '[]',
    '{}',
    '{"type":"x","id":"a"}',
    '{"type":"request"}',
    '{"type":"cancel"}',
    `{"type":"cancel","id":"${'x'.repeat(200)}"}`,
    '['.repeat(10_000),
  ];
  for (const text of bad) client.send(text);
  client.socket.send(Buffer.from('binary'));
  await eventually(() => client.frames.length === bad.length + 1);
  for (const frame of client.frames)
    expect(frame).toMatchObject({
      id: null,
      type: 'error',
      status: 400,
      error: { message: expect.any(String) },
    });
  client.request('fine');
  await client.ended('fine');
  expect(client.of('fine').at(-1)).toMatchObject({ type: 'done' });
});

test('a bad body is answered under its id, with the field', async () => {
  await start();
  const client = await open();
  client.request('a', { temperature: 5 });
  client.request('b', { model: 'gpt-x' });
  client.send({ type: 'request', id: 'c' });
  await Promise.all(['a', 'b', 'c'].map((id) => client.ended(id)));
  const faults = ['a', 'b', 'c'].map((id) => client.of(id)[0]);
  expect(faults).toMatchObject([
    { type: 'error', status: 400, error: { param: 'temperature' } },
    { type: 'error', status: 404, error: { code: 'model_not_found' } },
    { type: 'error', status: 400, error: { param: null } },
  ]);
});

test('a failure is an error event, once', async () => {
  await start({ script: () => [{ answer: 'a' }, { fail: new NonFiniteError('logits were NaN') }] });
  const client = await open();
  client.request('r');
  await client.ended('r');
  expect(client.of('r').map((event) => event.type)).toEqual(['created', 'answer.delta', 'error']);
  expect(client.of('r').at(-1)).toMatchObject({ status: 500, error: { code: 'non_finite' } });
});

test('an id that is running, and too many requests at once', async () => {
  await start({ script: endless, server: { socketRequestLimit: 2 } });
  const client = await open();
  for (const id of ['a', 'b', 'c', 'a']) client.request(id);
  await client.ended('c');
  expect(client.of('c')).toMatchObject([
    { type: 'error', status: 429, error: { code: 'rate_limit_exceeded' } },
  ]);
  await eventually(() => client.frames.some((frame) => frame.id === null));
  expect(client.frames.find((frame) => frame.id === null)).toMatchObject({
    type: 'error',
    error: { param: 'id' },
  });
  expect(client.of('a').some((frame) => frame.type === 'error')).toBe(false);
  client.socket.close();
  await eventually(() => server.runner.running === 0);
  expect(server.runner.ends).toEqual(['stopped', 'stopped']);
});

test('keys: header or subprotocol; other paths and origins are refused with JSON', async () => {
  await start({ server: { apiKeys: ['key'], corsOrigins: ['https://app.example'] } });
  const refusal = (protocols: string[], options: object = {}) =>
    open(protocols, options).then(
      () => 'opened',
      (response) => response.statusCode as number,
    );
  expect(await refusal([])).toBe(401);
  expect(await refusal(['searchloop', 'searchloop-api-key.wrong'])).toBe(401);
  const client = await open(['searchloop', 'searchloop-api-key.key']);
  expect(client.socket.protocol).toBe('searchloop');
  const headers = { authorization: 'Bearer key' };
  expect(await refusal([], { headers })).toBe('opened');
  expect(await refusal([], { headers, origin: 'https://evil.example' })).toBe(403);
  expect(await refusal([], { headers, origin: 'https://app.example' })).toBe('opened');
  const lost = new WebSocket(`${server.url.replace('http', 'ws')}/v1/other`, { headers });
  const response = await new Promise<NodeJS.ReadableStream & { statusCode: number }>((resolve) => {
    lost.on('unexpected-response', (_request, message) => resolve(message as never));
    lost.on('error', () => {});
  });
  let body = '';
  for await (const chunk of response) body += chunk;
  expect([response.statusCode, JSON.parse(body)]).toMatchObject([404, { error: { code: 'not_found' } }]);
});

test('without keys a socket of a foreign page asks, and gives no right answers', async () => {
  await start();
  const labelled = { searchloop: { golden_answers: ['Paris'] } };
  for (const [origin, isOwn] of [
    [undefined, true],
    [server.url, true],
    ['https://evil.example', false],
    ['null', false],
  ] as const) {
    const client = await open([], origin === undefined ? {} : { origin });
    client.request('plain');
    client.request('labelled', labelled);
    await Promise.all([client.ended('plain'), client.ended('labelled')]);
    expect(client.of('plain').at(-1)?.type).toBe('done');
    // Nothing is kept here, which is said to those who may label.
    expect(client.of('labelled').at(-1)).toMatchObject({
      type: 'error',
      status: isOwn ? 400 : 403,
      error: { code: isOwn ? null : 'insufficient_scope' },
    });
  }
});

test('an upgrade that is none gets JSON', async () => {
  await start();
  const text = await new Promise<string>((resolve) => {
    const socket = createConnection(Number(new URL(server.url).port), '127.0.0.1', () =>
      socket.write('GET /v1/stream HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'),
    );
    let all = '';
    socket.on('data', (data) => {
      all += data;
    });
    socket.on('close', () => resolve(all));
  });
  expect(text).toMatch(/^HTTP\/1.1 400 /);
  expect(JSON.parse(text.split('\r\n\r\n')[1]!)).toMatchObject({ error: { type: 'invalid_request_error' } });
});

test('a frame over the limit closes the socket, not the server', async () => {
  await start({ server: { bodyLimitBytes: 10_000 } });
  const client = await open();
  const closed = new Promise<number>((resolve) => client.socket.on('close', resolve));
  client.send('x'.repeat(20_000));
  expect(await closed).toBe(1009);
  const next = await open();
  next.request('r');
  await next.ended('r');
});

test('a slow reader: its producer pauses near the mark, others go on, and it gets all when it reads again', async () => {
  const events = 320;
  const text = 'x'.repeat(64 * 1024);
  await start({
    script: (request) => (request.seed === 1 ? Array(events).fill({ noise: text }) : [{ answer: 'quick' }]),
    // The last event repeats all of it.
    server: { reasoningFields: 'reasoning' },
  });
  const slow = await open();
  const before = process.memoryUsage().rss;
  slow.socket.pause();
  slow.request('long', { seed: 1 });
  let seen = -1;
  await eventually(() => {
    const now = server.runner.yielded;
    const still = now === seen && now > 0;
    seen = now;
    return still;
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(server.runner.yielded).toBeLessThan(0.7 * events);
  expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  const other = await open();
  other.request('quick');
  await other.ended('quick');
  slow.socket.resume();
  await slow.ended('long');
  expect(slow.of('long').filter((event) => event.type === 'reasoning.delta')).toHaveLength(events);
});

test('one that reads nothing for too long is closed and its rollouts ended', async () => {
  await start({
    script: () => Array(2000).fill({ noise: 'x'.repeat(64 * 1024) }),
    server: { slowReaderTimeoutMs: 1000 },
  });
  const client = await open();
  client.socket.pause();
  client.request('a');
  client.request('b');
  await eventually(() => server.runner.running === 2);
  await eventually(() => server.runner.running === 0);
  expect(server.runner.ends).toEqual(['stopped', 'stopped']);
});

test('beyond the hard mark one more event closes the socket', async () => {
  await start({
    script: () => [{ noise: 'x'.repeat(20 * 1024 * 1024) }, { until: new Promise(() => {}) }],
    server: { streamBufferHardBytes: 2 * 1024 * 1024 },
  });
  const client = await open();
  client.socket.pause();
  client.request('a');
  await eventually(() => server.runner.yielded === 1);
  expect(server.runner.running).toBe(1);
  client.request('b');
  await eventually(() => server.runner.running === 0);
  expect(server.runner.ends).not.toContain('done');
});

test('one big event to a client that reads is no fault', async () => {
  await start({
    script: () => [{ noise: 'x'.repeat(4 * 1024 * 1024) }],
    server: { streamBufferHardBytes: 1024 * 1024 },
  });
  const client = await open();
  client.request('a');
  await client.ended('a');
  expect(client.of('a').at(-1)).toMatchObject({ type: 'done' });
});

test('a frozen client is removed after two missed pings; one that answers stays', async () => {
  await start({
    script: () => [{ answer: 'a' }, { until: new Promise(() => {}) }],
    server: { socketHeartbeatMs: 100 },
  });
  const frozen = await open([], { autoPong: false });
  const lively = await open();
  frozen.request('f');
  lively.request('l');
  await eventually(() => server.runner.running === 2);
  await new Promise((resolve) => frozen.socket.on('close', resolve));
  await eventually(() => server.runner.ends.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(server.runner.ends).toEqual(['stopped']);
  expect(lively.socket.readyState).toBe(WebSocket.OPEN);
});
