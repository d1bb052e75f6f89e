// What is not a proper request still gets the JSON envelope, an id, and leaves the server alive.

import type { IncomingMessage, Server } from 'node:http';
import { connect, Server as NetServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { post, QUESTION, startTestServer, type TestServer } from '../../support/test-server.js';
import { UPGRADE } from '../../support/upgrade.js';

let server: TestServer;
/** What listens inside of it. */
let http: Server;
beforeAll(async () => {
  const listen = jest.spyOn(NetServer.prototype, 'listen');
  server = await startTestServer({ server: { bodyLimitBytes: 200_000 } });
  http = listen.mock.contexts[0] as Server;
  listen.mockRestore();
});
afterAll(() => server.close());

const chatUrl = () => `${server.url}/v1/chat/completions`;

async function expectError(response: Response, status: number, code: string | null) {
  const text = await response.text();
  expect([response.status, response.headers.get('content-type')]).toEqual([
    status,
    'application/json; charset=utf-8',
  ]);
  expect(response.headers.get('x-request-id')).toMatch(/^req_/);
  expect(text.length).toBeLessThan(16 * 1024);
  const { error } = JSON.parse(text);
  expect(Object.keys(error).sort()).toEqual(['code', 'message', 'param', 'type']);
  expect(error).toMatchObject({ code, message: expect.any(String), type: expect.any(String) });
}

const send = (init: RequestInit, path = '/v1/chat/completions') => fetch(`${server.url}${path}`, init);
const json = { 'content-type': 'application/json' };

test.each([
  '/',
  '/nothing',
  '/v1',
  '/v1/nothing',
  '/v1/chat/completions/x',
  '/admin/loop/banana',
  '/V1/none',
  `/${'x'.repeat(3000)}`,
])('no route %s', async (path) => expectError(await send({}, path), 404, 'not_found'));

test.each([
  ['GET', '/v1/chat/completions', 'POST'],
  ['DELETE', '/v1/models', 'GET'],
  ['POST', '/v1/models/searchloop', 'GET'],
  ['PUT', '/retrieve', 'POST'],
  ['POST', '/healthz', 'GET'],
  ['POST', '/v1/stream', 'GET'],
  ['GET', '/admin/loop/pause', 'POST'],
])('wrong method %s %s', async (method, path, allow) => {
  const response = await send({ method }, path);
  expect(response.headers.get('allow')).toBe(allow);
  await expectError(response, 405, 'method_not_allowed');
});

test('a socket route without an upgrade', async () =>
  expectError(await send({}, '/v1/stream'), 426, 'upgrade_required'));

test.each([
  ['no body', ''],
  ['no JSON', 'hello'],
  ['cut', '{"model":"searchloop"'],
  ['two values', '{} {}'],
  ['deep', `{"a":${'['.repeat(1000)}${']'.repeat(1000)}}`],
  [
    'raw invalid UTF-8',
    Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
  ],
  [
    'a truncated character',
    Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xf0, 0x9f]), Buffer.from('"}')]),
  ],
])('%s', async (_name, body) => expectError(await post(chatUrl(), body), 400, 'invalid_json'));

test.each(['null', '5', '"text"', '[]', 'true'])('JSON, but no object: %s', async (body) =>
  expectError(await post(chatUrl(), body), 400, null),
);

test.each([
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'application/json; charset=latin1',
])('content type %s', async (type) => {
  const response = await post(chatUrl(), QUESTION, { headers: { 'content-type': type } });
  await expectError(response, 415, 'unsupported_media_type');
});

test.each(['application/json; charset=utf-8', 'application/JSON;charset="UTF-8"', 'application/vnd.x+json'])(
  'content type %s is read',
  async (type) =>
    expect((await post(chatUrl(), QUESTION, { headers: { 'content-type': type } })).status).toBe(200),
);

test('compressed bodies: gzip is read, its bombs are not, other codings are refused', async () => {
  const gzip = (value: string) =>
    send({ method: 'POST', headers: { ...json, 'content-encoding': 'gzip' }, body: gzipSync(value) });
  expect((await gzip(JSON.stringify(QUESTION))).status).toBe(200);
  await expectError(await gzip(' '.repeat(20_000_000)), 413, 'request_too_large');
  const odd = { ...json, 'content-encoding': 'rot13' };
  await expectError(await send({ method: 'POST', headers: odd, body: '{}' }), 415, 'unsupported_media_type');
});

test('over the limit', async () => {
  const content = 'x'.repeat(300_000);
  await expectError(
    await post(chatUrl(), { ...QUESTION, messages: [{ role: 'user', content }] }),
    413,
    'request_too_large',
  );
});

test('half a character in JSON is replaced, not a crash', async () => {
  const response = await post(
    chatUrl(),
    '{"model":"searchloop","messages":[{"role":"user","content":"a\\ud800b"}]}',
  );
  expect(response.status).toBe(200);
  expect(server.runner.requests.at(-1)?.messages[0]?.content).toBe('a\ufffdb');
});

test('20,000 bad messages make one small error', async () => {
  const messages = Array(20_000).fill({});
  await expectError(await post(chatUrl(), { ...QUESTION, messages }), 400, null);
  await expectError(await post(chatUrl(), { ...QUESTION, messages: messages.slice(0, 9000) }), 400, null);
});

test('a sane request id comes back; an odd one is replaced', async () => {
  const idOf = async (id: string) =>
    (await send({ headers: { 'x-request-id': id } }, '/healthz')).headers.get('x-request-id');
  expect(await idOf('trace-1.a:b_c')).toBe('trace-1.a:b_c');
  for (const id of ['', 'a b', 'x'.repeat(129), '<script>', 'é'])
    expect(await idOf(id)).toMatch(/^req_[0-9a-f]{24}$/);
});

/** Sends bytes as they are and reads all that comes back. */
function raw(bytes: string | Buffer, url = server.url): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes));
    let text = '';
    socket.on('data', (data) => {
      text += data;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
  });
}

test('what is no HTTP gets JSON and a closed connection', async () => {
  for (const [bytes, status] of [
    ['hello\r\n\r\n', 400],
    ['GET / HTTP/1.1\r\nbad header\r\n\r\n', 400],
    [`GET / HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ] as const) {
    const [head, body] = (await raw(bytes)).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(head).toContain('x-request-id: req_');
    expect(JSON.parse(body!)).toMatchObject({ error: { type: 'invalid_request_error' } });
  }
});

test('a body without end is answered before its end', async () => {
  const head =
    'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n';
  for (const body of [
    'Content-Length: 1000000000000\r\n\r\n{',
    `Transfer-Encoding: chunked\r\n\r\n40000\r\n${'x'.repeat(0x40000)}\r\n`,
  ])
    expect(await raw(head + body)).toMatch(/^HTTP\/1.1 413 [\s\S]*"request_too_large"/);
});

test('a client that sends all before it reads gets its refusal, also where its connection is to be closed', async () => {
  const length = 5_000_000;
  const sent = (line: string): string =>
    `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`;
  const locked = await startTestServer({ server: { apiKeys: ['key'] } });
  try {
    expect(await raw(sent('POST /retrieve'))).toMatch(/^HTTP\/1.1 413 /);
    expect(await raw(sent('POST /nowhere'))).toMatch(/^HTTP\/1.1 404 /);
    expect(await raw(sent('PUT /retrieve'))).toMatch(/^HTTP\/1.1 405 /);
    expect(await raw(sent('POST /retrieve'), locked.url)).toMatch(/^HTTP\/1.1 401 /);
  } finally {
    await locked.close();
  }
});

test('a body that is not what its coding says', async () => {
  const headers = { ...json, 'content-encoding': 'gzip' };
  await expectError(await send({ method: 'POST', headers, body: '{"model":"searchloop"}' }), 400, null);
  const cut = gzipSync(JSON.stringify(QUESTION)).subarray(0, 40);
  await expectError(await send({ method: 'POST', headers, body: cut }), 400, null);
});

/** A request as bytes, with these headers. */
function request(...headers: string[]): string {
  const body = JSON.stringify(QUESTION);
  const lines = ['Content-Type: application/json', `Content-Length: ${body.length}`, ...headers];
  return `POST /v1/chat/completions HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
}

test('the wish for another protocol is passed over, as Java clients send it with every request', async () => {
  const wish = ['Host: x', 'Upgrade: h2c', 'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA'];
  const one = request(...wish, 'Connection: Upgrade, HTTP2-Settings');
  const last = request(...wish, 'Connection: close, Upgrade, HTTP2-Settings');
  const listeners: number[] = [];
  const count = ({ socket }: IncomingMessage): unknown => listeners.push(socket.listenerCount('error'));
  http.on('request', count);
  const text = await raw(one.repeat(14) + last);
  http.off('request', count);
  expect(text.match(/HTTP\/1.1 200 OK/g)).toHaveLength(15);
  expect(text.match(/"content":"Paris"/g)).toHaveLength(15);
  // Nothing stays behind on a connection that goes on.
  expect(listeners.at(-1)).toBe(listeners[0]);
});

test('a WebSocket that is asked for behind an unanswered question opens after its answer', async () => {
  // A close frame, masked with zeros: the server answers it and hangs up.
  const close = '\x88\x80\0\0\0\0';
  const text = await raw(Buffer.from(`${request('Host: x')}${UPGRADE}\r\n\r\n${close}`, 'latin1'));
  expect(text).toMatch(/^HTTP\/1.1 200 OK[\s\S]*"content":"Paris"[\s\S]*HTTP\/1.1 101 /);
});

test('a missing host and an odd expectation', async () => {
  const [head, body] = (await raw(request('Connection: close'))).split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1.1 400 [\s\S]*x-request-id: req_/);
  expect(body).toContain('expected the header \\"Host\\"');
  expect(await raw(request('Host: x', 'Expect: banana', 'Connection: close'))).toMatch(/^HTTP\/1.1 200 /);
});

test('a connection that cannot be taken is logged', () => {
  const error = Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' });
  expect(() => http.emit('error', error)).not.toThrow();
  expect(server.logs.at(-1)).toMatchObject({
    msg: 'a connection could not be taken',
    err: { code: 'EMFILE' },
  });
});

test('the server is still there', async () => expect((await post(chatUrl(), QUESTION)).status).toBe(200));

test('a connection may rest for longer than clients let theirs', async () => {
  const response = await fetch(`${server.url}/healthz`);
  expect(response.headers.get('keep-alive')).toBe('timeout=75');
});
