import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type LoopNews, sendNews } from '../../../src/loop/online/webhooks.js';

const news: LoopNews = { event: 'refused', version: 'v', live: 'base', reasons: ['worse'], by: null, at: 1 };

let server: Server;
let url: string;
let failing: number;
const received: unknown[] = [];
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (data) => (body += data));
    request.on('end', () => {
      response.statusCode = failing-- > 0 ? 500 : 200;
      if (response.statusCode === 200) received.push(JSON.parse(body));
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterAll(() => server.close());

test('news arrive, also at the third try', async () => {
  failing = 2;
  const onFailure = jest.fn();
  await sendNews(news, { urls: [url], onFailure, retryMs: 1 });
  expect(received).toEqual([{ object: 'loop.event', ...news }]);
  expect(onFailure).not.toHaveBeenCalled();
});

test('a receiver that is away is told of once and costs nothing else', async () => {
  failing = 9;
  const failures: string[] = [];
  await sendNews(news, { urls: [url], onFailure: (_url, error) => failures.push(error.message), retryMs: 1 });
  expect(failures).toEqual(['status 500']);
});
