import { adapter, ENGINE_INFO, startTestServer, type TestServer } from '../../support/test-server.js';

let server: TestServer;
beforeAll(async () => {
  const candidate = { ...adapter('loop-candidate', 'eeee000011112222'), isInternal: true };
  const adapters = [
    adapter('tuned', 'abcdef0123456789'),
    adapter('org/name', 'ffff000011112222'),
    adapter('wiki:rag', 'aaaa000011112222'),
    candidate,
  ];
  server = await startTestServer({ engine: { listAdapters: () => adapters, liveAdapter: adapters[0]! } });
});
afterAll(() => server.close());

const get = async (path: string) => {
  const response = await fetch(`${server.url}${path}`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

test('every model has the required keys and says which version answers', async () => {
  const { body } = await get('/v1/models');
  const data = body['data'] as Record<string, unknown>[];
  expect(body['object']).toBe('list');
  for (const model of data)
    expect(model).toEqual({
      id: expect.stringMatching(/^searchloop/),
      object: 'model',
      created: expect.any(Number),
      owned_by: 'searchloop',
      root: ENGINE_INFO.modelId,
      parent: model['id'] === 'searchloop' ? null : 'searchloop',
      max_model_len: ENGINE_INFO.maxSequenceTokens,
      permission: [],
      searchloop: { method: expect.any(String), adapter_version: expect.any(String) },
    });
  expect(data[0]).toMatchObject({ id: 'searchloop', searchloop: { adapter_version: 'abcdef0123456789' } });
  expect(data.map((model) => model['id'])).toEqual(
    expect.arrayContaining(['searchloop@org/name', 'searchloop@wiki:rag']),
  );
  expect(JSON.stringify(body)).not.toContain('candidate');
});

test.each([
  'searchloop:rag',
  'searchloop%3Arag',
  'searchloop@tuned',
  'searchloop%40tuned%3Acot',
  'searchloop@org/name',
  'searchloop@wiki:rag',
  'searchloop@org%2Fname:direct',
])('GET /v1/models/%s', async (path) => {
  const { status, body } = await get(`/v1/models/${path}`);
  expect([status, body['id']]).toEqual([200, decodeURIComponent(path)]);
});

test.each([
  'gpt-4o',
  'searchloop@nobody',
  'searchloop@loop-candidate',
  'searchloop@eeee000011112222',
  'a/b/c',
  'x'.repeat(5000),
])('unknown: %s', async (path) => {
  const { status, body } = await get(`/v1/models/${path}`);
  expect(status).toBe(404);
  expect(body).toMatchObject({ error: { code: 'model_not_found', param: 'model' } });
});

test('a broken escape is a 400', async () => {
  const { status, body } = await get('/v1/models/%E0%A4%A');
  expect(status).toBe(400);
  expect(body).toMatchObject({ error: { type: 'invalid_request_error' } });
});
