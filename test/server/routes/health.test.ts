import type { ServerParts } from '../../../src/server/context.js';
import { eventually } from '../../support/eventually.js';
import { adapter, scriptedPolicy, startTestServer } from '../../support/test-server.js';

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

test('degraded: answers are given, and what does not work is told', async () => {
  const server = await startTestServer({ loopTrouble: () => 'it has not started: no database' });
  try {
    const ready = await fetch(`${server.url}/readyz`);
    expect(ready.status).toBe(200);
    expect(await ready.json()).toMatchObject({
      status: 'degraded',
      reasons: ['the loop: it has not started: no database'],
    });
  } finally {
    await server.close();
  }
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

test('a live adapter that the engine has lost: not ready, though the base model could answer', async () => {
  const run = (): never => {
    throw new Error('nothing is asked');
  };
  const liveAdapter = { ...adapter('mine', 'v1'), fault: 'its folder is gone' };
  const { ready, body } = await probe({
    policy: () => ({ state: 'ready', value: scriptedPolicy({ run }, { liveAdapter }) }),
  });
  expect(ready).toBe(503);
  expect(body).toMatchObject({
    reasons: ['the live adapter "mine" is not in the engine: its folder is gone'],
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
