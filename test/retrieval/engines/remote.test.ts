import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CancelledError, RetrievalError } from '../../../src/errors.js';
import { createRemoteRetriever } from '../../../src/retrieval/engines/remote.js';
import { toSearchR1Document } from '../../../src/retrieval/search-r1-document.js';

type Handler = (body: string, response: ServerResponse, request: IncomingMessage) => void;

let close: () => Promise<void> = async () => {};
afterEach(() => close());

async function serve(handler: Handler): Promise<string> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => handler(body, response, request));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const json = (response: ServerResponse, value: unknown): void => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(value));
};
const remote = (url: string, options = {}) => createRemoteRetriever({ url, timeoutMs: 2000, ...options });
const hit = (id: string, score: number) => ({
  document: toSearchR1Document({ id, title: `Title "${id}"`, text: `Text of\n${id}` }),
  score,
});

test('asks as Search-R1 does and reads titles and texts out of contents', async () => {
  const bodies: unknown[] = [];
  const url = await serve((body, response, request) => {
    bodies.push([request.method, request.url, request.headers['content-type'], JSON.parse(body)]);
    json(response, { result: [[hit('a', 0.9), hit('b', 0.5)], []] });
  });
  const retriever = remote(url);
  expect(retriever.info).toEqual({ kind: 'remote', name: `${url}/retrieve`, passageCount: null });
  expect(await retriever.search(['first', ' ', 'second '], 2)).toEqual([
    [
      { id: 'a', title: 'Title "a"', text: 'Text of\na', score: 0.9 },
      { id: 'b', title: 'Title "b"', text: 'Text of\nb', score: 0.5 },
    ],
    [],
    [],
  ]);
  expect(bodies).toEqual([
    ['POST', '/retrieve', 'application/json', { queries: ['first', 'second'], topk: 2, return_scores: true }],
  ]);
});

test('empty queries are not sent; a path in the address is kept', async () => {
  let asked = '';
  const url = await serve((_body, response, request) => {
    asked = request.url ?? '';
    json(response, { result: [[hit('a', 1)]] });
  });
  const retriever = remote(`${url}/my/search`);
  expect(await retriever.search(['', '\n'], 3)).toEqual([[], []]);
  expect(asked).toBe('');
  await retriever.search(['x'], 3);
  expect(asked).toBe('/my/search');
});

test('documents without scores, with titles of their own or without ids are understood; extra ones are cut', async () => {
  const url = await serve((_body, response) =>
    json(response, {
      result: [
        [
          { id: 7, contents: '"T"\nx' },
          { title: 'U', text: 'y' },
          { id: '9', contents: 'z' },
        ],
      ],
    }),
  );
  const [found] = await remote(url).search(['q'], 2);
  expect(found).toMatchObject([
    { id: '7', title: 'T', text: 'x' },
    { title: 'U', text: 'y' },
  ]);
  expect(found?.[0]?.score).toBeGreaterThan(found?.[1]?.score as number);
});

test.each<[string, Handler, RegExp]>([
  ['a status', (_body, response) => void response.writeHead(500).end('no'), /answered 500/],
  ['no JSON', (_body, response) => void response.end('<html>'), /expected JSON/],
  ['another form', (_body, response) => json(response, { results: [] }), /expected \{"result"/],
  ['a wrong number of lists', (_body, response) => json(response, { result: [[], []] }), /1 queries, came 2/],
  [
    'a score that is no number',
    (_body, response) => json(response, { result: [[{ ...hit('a', 1), score: 'x' }]] }),
    /expected/,
  ],
  [
    'a redirect',
    (_body, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    /redirect/,
  ],
  [
    'a cut connection',
    (_body, response) => void response.destroy(),
    /other side closed|terminated|fetch failed/,
  ],
])('%s is a RetrievalError that names the address', async (_name, handler, message) => {
  const url = await serve(handler);
  await expect(remote(url).search(['q'], 1)).rejects.toThrow(RetrievalError);
  await expect(remote(url).search(['q'], 1)).rejects.toThrow(message);
  await expect(remote(url).search(['q'], 1)).rejects.toThrow('/retrieve');
});

test('an answer above the limit, no answer in time, nobody there', async () => {
  const big = await serve((_body, response) => {
    for (let i = 0; i < 200; i++) response.write('x'.repeat(10_000));
    response.end();
  });
  await expect(remote(big, { maxAnswerBytes: 100_000 }).search(['q'], 1)).rejects.toThrow(
    /more than 100000 bytes/,
  );
  await close();
  const slow = await serve(() => {});
  await expect(remote(slow, { timeoutMs: 100 }).search(['q'], 1)).rejects.toThrow(/within 100 ms/);
  await close();
  await expect(remote(slow).search(['q'], 1)).rejects.toThrow(RetrievalError);
});

test('the signal ends a running search', async () => {
  const url = await serve(() => {});
  const controller = new AbortController();
  const search = remote(url).search(['q'], 1, { signal: controller.signal });
  setTimeout(() => controller.abort(), 50);
  await expect(search).rejects.toThrow(CancelledError);
});
