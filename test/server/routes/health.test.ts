import type { ServerParts } from '../../../src/server/index.js';
import { eventually, startTestServer } from '../../support/test-server.js';

async function probe(parts: Partial<ServerParts>) {
  const server = await startTestServer({ parts, server: { apiKeys: ['secret'] } });
  try {
    const [health, ready] = await Promise.all([
      fetch(`${server.url}/healthz`),
      fetch(`${server.url}/readyz`),
    ]);
    return { health: health.status, ready: ready.status, headers: ready.headers, body: await ready.json() };
  } finally {
    await server.close();
  }
}

test('ready: 200 with the state of the engine, without a key', async () => {
  expect(await probe({})).toMatchObject({
    health: 200,
    ready: 200,
    body: { status: 'ready', engine: { freeSlots: 16, queued: 0 } },
  });
});

test('not ready: 503 with every reason; alive all the same', async () => {
  const { health, ready, headers, body } = await probe({
    policy: () => ({ state: 'loading', reason: 'reading weights' }),
    index: () => ({ state: 'broken', reason: 'index "demo" holds 0 passages' }),
  });
  expect([health, ready]).toEqual([200, 503]);
  expect(headers.get('retry-after')).toBe('5');
  expect(body).toEqual({
    status: 'not ready',
    reasons: ['model is loading: reading weights', 'index is broken: index "demo" holds 0 passages'],
  });
});

test('probes are no news: their lines are for debugging', async () => {
  const server = await startTestServer();
  try {
    for (const path of ['/healthz', '/readyz?x=1', '/v1/models'])
      await (await fetch(server.url + path)).text();
    await eventually(() => server.logs.length > 0);
    expect(server.logs.map((line) => line['path'])).toEqual(['/v1/models']);
  } finally {
    await server.close();
  }
});
