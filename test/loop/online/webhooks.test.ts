import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Book } from '../../../src/loop/online/book.js';
import type { LoopHouse } from '../../../src/loop/online/house.js';
import { newLoopState } from '../../../src/loop/online/state.js';
import { type LoopNews, sendNews } from '../../../src/loop/online/webhooks.js';
import { eventually } from '../../support/eventually.js';

const news: LoopNews = { event: 'refused', version: 'v', live: 'base', reasons: ['worse'], by: null, at: 1 };

let server: Server;
let url: string;
let failing: number;
const received: unknown[] = [];
beforeEach(() => {
  received.splice(0);
  failing = 0;
});
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

test('what is told goes to every receiver, in its order, and to the log', async () => {
  const notes: unknown[] = [];
  const house = {
    settings: { webhooks: [url, `${url}again`] },
    onNote: (...note: unknown[]) => notes.push(note),
    onFailure: jest.fn(),
  } as unknown as LoopHouse;
  const book = new Book(house, { save: async () => {} }, { ...newLoopState(0, 'base'), live: 'l' });
  const version = 'abcdef0123456789';
  book.tell('refused', version, ['worse'], 'key');
  book.tell('paused', null, ['enough']);
  await eventually(() => received.length === 4);
  const refused = {
    object: 'loop.event',
    event: 'refused',
    version,
    live: 'l',
    reasons: ['worse'],
    by: 'key',
  };
  const paused = { ...refused, event: 'paused', version: null, reasons: ['enough'], by: null };
  expect(received).toMatchObject([refused, refused, paused, paused]);
  expect(notes).toEqual([
    ['refused: abcdef012345', { reasons: ['worse'], live: 'l', by: 'key' }],
    ['paused: the loop', { reasons: ['enough'], live: 'l', by: null }],
  ]);
});
