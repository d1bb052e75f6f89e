import { RetrievalError } from '../../../src/errors.js';
import type { Retriever } from '../../../src/retrieval/index.js';
import { eventually } from '../../support/eventually.js';
import { slowPost } from '../../support/slow-client.js';
import {
  echoRetriever,
  post,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from '../../support/test-server.js';

let server: TestServer;
const start = async (options: TestServerOptions = {}) => {
  server = await startTestServer(options);
};
afterEach(() => server.close());
const retrieve = (body: unknown) => post(`${server.url}/retrieve`, body);

test('documents with scores, as Search-R1 asks for them', async () => {
  await start();
  const response = await retrieve({ queries: ['cats', 'dogs'], topk: 2, return_scores: true });
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  const row = (query: string) =>
    [0, 1].map((at) => ({
      document: { id: `p${at}`, contents: `"Title ${at}"\nabout ${query}` },
      score: 1 - at / 10,
    }));
  expect(await response.json()).toEqual({ result: [row('cats'), row('dogs')] });
});

test('without scores the documents alone; topk has a default', async () => {
  await start();
  const { result } = (await (await retrieve({ queries: ['cats'] })).json()) as { result: unknown[][] };
  expect(result[0]).toHaveLength(3);
  expect(result[0]![0]).toEqual({ id: 'p0', contents: '"Title 0"\nabout cats' });
});

test('a batch of a trainer is searched in slices and comes back in order', async () => {
  const sizes: number[] = [];
  const echo = echoRetriever();
  const search: Retriever['search'] = (queries, k, options) => {
    sizes.push(queries.length);
    return echo.search(queries, k, options);
  };
  await start({ retriever: echoRetriever(search) });
  const queries = Array.from({ length: 1000 }, (_, at) => `query ${at}`);
  const { result } = (await (await retrieve({ queries, topk: 1, return_scores: true })).json()) as {
    result: { document: { contents: string } }[][];
  };
  expect(result.map((row) => row[0]!.document.contents.split('about ')[1])).toEqual(queries);
  expect(Math.max(...sizes)).toBe(128);
});

test.each<[unknown, string | null]>([
  [{}, 'queries'],
  [{ queries: [] }, 'queries'],
  [{ queries: 'cats' }, 'queries'],
  [{ queries: ['a', 5] }, 'queries[1]'],
  [{ queries: ['x'.repeat(9000)] }, 'queries[0]'],
  [{ queries: Array(5000).fill('a') }, 'queries'],
  [{ queries: Array(4096).fill('a'), topk: 100 }, 'topk'],
  [{ queries: ['a'], topk: 0 }, 'topk'],
  [{ queries: ['a'], topk: 101 }, 'topk'],
  [{ queries: ['a'], topk: 1.5 }, 'topk'],
  [{ queries: ['a'], return_scores: 'yes' }, 'return_scores'],
  [[], null],
])('invalid: %#', async (body, param) => {
  await start();
  const response = await retrieve(body);
  expect([response.status, await response.json()]).toMatchObject([400, { error: { param, code: null } }]);
});

test('a failed search is a 503 that says nothing of the inside', async () => {
  await start({
    retriever: echoRetriever(() => Promise.reject(new RetrievalError('http://10.0.0.1 refused'))),
  });
  const response = await retrieve({ queries: ['a'] });
  const text = await response.text();
  expect(response.status).toBe(503);
  expect(JSON.parse(text)).toMatchObject({ error: { code: 'retrieval_failed' } });
  expect(text).not.toContain('10.0.0.1');
});

test('while the index loads: 503 with a wait', async () => {
  await start({ parts: { index: () => ({ state: 'loading', reason: 'building' }) } });
  const response = await retrieve({ queries: ['a'] });
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
});

test('a client that leaves stops the search', async () => {
  let stopped = false;
  const search: Retriever['search'] = (_queries, _k, options) =>
    new Promise((_, reject) => {
      options?.signal?.addEventListener('abort', () => {
        stopped = true;
        reject(options.signal?.reason);
      });
    });
  await start({ retriever: echoRetriever(search) });
  const controller = new AbortController();
  const answer = post(`${server.url}/retrieve`, { queries: ['a'] }, { signal: controller.signal });
  setTimeout(() => controller.abort(), 50);
  await expect(answer).rejects.toThrow();
  await eventually(() => stopped);
});

test('a client that left before its answer was there holds up no stop', async () => {
  const echo = echoRetriever();
  let searching = false;
  const search: Retriever['search'] = async (queries, k, options) => {
    searching = true;
    await new Promise((resolve) => options?.signal?.addEventListener('abort', resolve));
    return echo.search(queries, k, options);
  };
  await start({ retriever: echoRetriever(search), server: { shutdownGraceMs: 600_000 } });
  const client = await slowPost(server.url, '/retrieve', { queries: ['a'] });
  await eventually(() => searching);
  client.socket.destroy();
  await server.close();
});

test('the route can be switched off', async () => {
  await start({ server: { retrieveRoute: false } });
  expect((await retrieve({ queries: ['a'] })).status).toBe(404);
});
