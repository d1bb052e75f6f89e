// Keys and origins.

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
  expect(answer.headers.get('access-control-expose-headers')).toContain('x-request-id');
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
