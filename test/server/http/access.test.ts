// Keys and origins.

import { request } from 'node:http';
import { WebSocket } from 'ws';
import { createApiKey } from '../../../src/trajectory/index.js';
import { eventually } from '../../support/eventually.js';
import { post, QUESTION, startTestServer, type TestServer } from '../../support/test-server.js';

let server: TestServer;
afterEach(() => server.close());
const ask = (headers: Record<string, string>) =>
  post(`${server.url}/v1/chat/completions`, QUESTION, { headers });

test('keys: any of the configured ones, by bearer, on every route but the probes', async () => {
  server = await startTestServer({ server: { apiKeys: ['first-key', 'second-key'] } });
  for (const key of ['first-key', 'second-key'])
    expect((await ask({ authorization: `Bearer ${key}` })).status).toBe(200);
  expect((await ask({ authorization: 'bearer first-key' })).status).toBe(200);
  for (const header of [
    '',
    'Bearer',
    'Bearer wrong',
    'Basic first-key',
    'first-key',
    'Bearer first-key x',
    'Bearer FIRST-KEY',
  ])
    expect((await ask(header === '' ? {} : { authorization: header })).status).toBe(401);
  const refused = await ask({});
  expect(refused.headers.get('www-authenticate')).toBe('Bearer');
  expect(await refused.json()).toMatchObject({
    error: { type: 'invalid_request_error', code: 'invalid_api_key' },
  });
  for (const path of ['/v1/models', '/v1/models/searchloop', '/v1/stream', '/v1/nothing'])
    expect((await fetch(`${server.url}${path}`)).status).toBe(401);
  expect((await post(`${server.url}/retrieve`, { queries: ['a'] })).status).toBe(401);
  for (const path of ['/healthz', '/readyz']) expect((await fetch(`${server.url}${path}`)).status).toBe(200);
});

test('a socket outlives its key by no request', async () => {
  const { key, stored } = createApiKey('phone', ['ask']);
  let revokedAt: number | null = null;
  server = await startTestServer({
    store: {
      keys: async () => [{ ...stored, createdAt: 0, revokedAt }],
      addFeedback: () => Promise.reject(new Error('not asked for here')),
      health: () => ({ waiting: 0, waitingBytes: 0, refused: 0, lost: 0, trouble: null }),
    },
  });
  const headers = { authorization: `Bearer ${key}` };
  const isKnown = async (): Promise<boolean> => (await fetch(`${server.url}/v1/models`, { headers })).ok;
  await eventually(isKnown);
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1/stream`, { headers });
  const frames: Record<string, unknown>[] = [];
  socket.on('message', (text) => frames.push(JSON.parse(String(text))));
  const code = new Promise<number>((resolve) => socket.on('close', resolve));
  const ask = (id: string): void => socket.send(JSON.stringify({ type: 'request', id, body: QUESTION }));
  socket.on('open', () => ask('before'));
  await eventually(() => frames.at(-1)?.['type'] === 'done');
  revokedAt = 1;
  await eventually(async () => !(await isKnown()));
  ask('after');
  expect(await code).toBe(4401);
  expect(frames.at(-1)).toMatchObject({ id: 'after', type: 'error', error: { code: 'invalid_api_key' } });
  expect(server.runner.requests).toHaveLength(1);
});

test('a refused request has not been read: its body is not parsed', async () => {
  server = await startTestServer({ server: { apiKeys: ['key'] } });
  const response = await post(`${server.url}/v1/chat/completions`, 'no json at all');
  expect(response.status).toBe(401);
});

test('no keys configured: dummy keys are fine', async () => {
  server = await startTestServer();
  expect((await ask({ authorization: 'Bearer dummy' })).status).toBe(200);
});

test('all origins by default; a preflight needs no key', async () => {
  server = await startTestServer({ server: { apiKeys: ['key'] } });
  const preflight = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://app.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type,x-stainless-lang',
    },
  });
  expect(preflight.status).toBe(204);
  expect(Object.fromEntries(preflight.headers)).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-allow-headers': 'authorization,content-type,x-stainless-lang',
    'access-control-allow-methods': expect.stringContaining('POST'),
  });
  const answer = await ask({ origin: 'https://app.example', authorization: 'Bearer key' });
  expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  for (const name of ['x-request-id', 'x-searchloop-version'])
    expect(answer.headers.get('access-control-expose-headers')).toContain(name);
});

test('a list of origins: others are refused, errors too carry the header', async () => {
  server = await startTestServer({ server: { corsOrigins: ['https://app.example'] } });
  const allowed = await ask({ origin: 'https://app.example' });
  expect([
    allowed.status,
    allowed.headers.get('access-control-allow-origin'),
    allowed.headers.get('vary'),
  ]).toEqual([200, 'https://app.example', 'origin']);
  const refused = await ask({ origin: 'https://evil.example' });
  expect([refused.status, await refused.json()]).toMatchObject([
    403,
    { error: { code: 'origin_not_allowed' } },
  ]);
  expect((await ask({ origin: 'null' })).status).toBe(403);
  expect((await ask({ origin: server.url })).status).toBe(200);
  expect((await ask({})).status).toBe(200);
  const missing = await fetch(`${server.url}/v1/none`, { headers: { origin: 'https://app.example' } });
  expect([missing.status, missing.headers.get('access-control-allow-origin')]).toEqual([
    404,
    'https://app.example',
  ]);
});

/** As a browser sends it: `fetch` would not let `host` through. @returns status and body */
function send(
  path: string,
  headers: Record<string, string>,
  body?: object,
): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const sent = request(
      `${server.url}${path}`,
      { method: body === undefined ? 'GET' : 'POST', headers: { ...type, ...headers } },
      async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode, body: text });
      },
    );
    sent.on('error', reject);
    sent.end(body === undefined ? '' : JSON.stringify(body));
  });
}

/** What is asked here needs a loop and a store: who gets past the scope is told that there is none. */
const PRIVILEGED: readonly [path: string, body?: object][] = [
  ['/v1/feedback', { id: 'x', rating: 'up' }],
  ['/admin/loop'],
  ['/admin/loop/pause', {}],
  ['/admin/loop/rollback', {}],
  ['/admin/loop/step', {}],
];

async function expectAskOnly(headers: Record<string, string>): Promise<void> {
  expect([headers, (await send('/v1/chat/completions', headers, QUESTION)).status]).toEqual([headers, 200]);
  for (const [path, body] of PRIVILEGED) {
    const refused = await send(path, headers, body);
    expect([headers, path, refused.status]).toEqual([headers, path, 403]);
    expect(JSON.parse(refused.body).error).toMatchObject({
      type: 'permission',
      code: 'insufficient_scope',
      message: expect.stringMatching(/another origin may only ask.*searchloop keys create/),
    });
  }
  const labelled = { ...QUESTION, searchloop: { golden_answers: ['Paris'] } };
  expect((await send('/v1/chat/completions', headers, labelled)).status).toBe(403);
}

async function expectAll(headers: Record<string, string>): Promise<void> {
  expect([headers, (await send('/v1/chat/completions', headers, QUESTION)).status]).toEqual([headers, 200]);
  for (const [path, body] of PRIVILEGED)
    expect([headers, path, (await send(path, headers, body)).status]).toEqual([headers, path, 404]);
}

test('without keys: whatever page is open may ask; only our own page and clients that are none may do more', async () => {
  server = await startTestServer();
  const { port } = new URL(server.url);
  await expectAll({});
  await expectAll({ host: `container:${port}` });
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`])
    await expectAll({ host, origin: `http://${host.toLowerCase()}` });
  const foreign: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://127.0.0.1:1' },
    { host: `evil.example:${port}`, origin: `http://evil.example:${port}` },
    // Over plain HTTP a page reads from its own origin without a word of it.
    { host: `evil.example:${port}` },
    { host: `myhost:${port}`, origin: `http://myhost:${port}` },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example', authorization: 'Bearer dummy', 'x-forwarded-host': 'evil.example' },
  ];
  for (const headers of foreign) await expectAskOnly(headers);
});

test('without keys: origins that are named keep all, also as the name of this server', async () => {
  const corsOrigins = ['*', 'https://app.example', 'http://myhost:8000'];
  server = await startTestServer({ server: { corsOrigins } });
  await expectAll({ origin: 'https://app.example', 'sec-fetch-site': 'cross-site' });
  await expectAll({ host: 'myhost:8000', origin: 'http://myhost:8000' });
  await expectAll({ host: 'app.example' });
  await expectAskOnly({ host: 'evil.example:8000', origin: 'http://evil.example:8000' });
});
