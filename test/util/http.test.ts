import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CancelledError } from '../../src/errors.js';
import { NoAnswerError, postJson, reasonOf } from '../../src/util/http.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test('JSON goes, the text of the answer comes, whatever its status', async () => {
  const url = await serve((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => response.writeHead(418).end(`${request.headers['x-own']} ${body} é`));
  });
  const answer = await postJson(url, { a: [1] }, { timeoutMs: 5000, headers: { 'x-own': 'yes' } });
  expect(answer).toEqual({ ok: false, status: 418, text: 'yes {"a":[1]} é' });
});

test('where no answer comes the reason is told, not that fetch failed', async () => {
  const away = await serve(() => {});
  for (const server of servers.splice(0)) server.close();
  const reason = (url: string, limits: object = {}) =>
    postJson(url, {}, { timeoutMs: 5000, ...limits }).then(
      () => 'an answer',
      (error: unknown) => (error instanceof NoAnswerError ? error.message : 'another error'),
    );
  expect(await reason(away)).toMatch(/^connect ECONNREFUSED 127\.0\.0\.1:\d+$/);
  expect(await reason(await serve((_request, response) => void response.destroy()))).toBe(
    'other side closed',
  );
  expect(await reason(await serve(() => {}), { timeoutMs: 20 })).toBe('no answer within 20 ms');
  const elsewhere = await serve(
    (_request, response) => void response.writeHead(302, { location: '/' }).end(),
  );
  expect(await reason(elsewhere)).toMatch(/redirect/);
  const long = await serve((_request, response) => void response.end('x'.repeat(100)));
  expect(await reason(long, { maxBytes: 99 })).toBe('the answer has more than 99 bytes');
  expect(await reason(long, { maxBytes: 100 })).toBe('an answer');
});

test('whoever gives up hears that, also while the answer comes', async () => {
  const url = await serve((_request, response) => void response.write('part'));
  const posted = postJson(url, {}, { timeoutMs: 5000, signal: AbortSignal.timeout(50) });
  await expect(posted).rejects.toThrow(CancelledError);
});

test('several addresses of a name fail together: the code says why', () => {
  const cause = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
  expect(reasonOf(new TypeError('fetch failed', { cause }))).toBe('ECONNREFUSED');
  expect(reasonOf(new Error('no answer within 8 s'))).toBe('no answer within 8 s');
});
