// Which pages are the server's own.

import fc from 'fast-check';
import { isForeignPage, isListed, isSameHost } from '../../../src/server/http/page.js';

const ALL = ['*'];
const known = (listed: readonly string[] = ALL, host = '127.0.0.1') => ({ corsOrigins: [...listed], host });
const page = (origin: string, host: string, listed: readonly string[] = ALL): boolean =>
  isForeignPage({ origin, host }, known(listed));

test('clients that are no browser come from no page', () => {
  for (const host of ['127.0.0.1:8000', '[::1]:8000', 'LOCALHOST', 'myhost:8000', 'searchloop'])
    expect([host, isForeignPage({ host }, known())]).toEqual([host, false]);
});

test('but a page does not always say that it is one: what comes to a name that anybody may point here may be one', () => {
  const read = (host?: string, own = known()) => isForeignPage(host === undefined ? {} : { host }, own);
  for (const host of ['evil.example:8000', 'evil.example.', '127.0.0.1.evil.example', 'a@b', '', undefined])
    expect([host, read(host)]).toEqual([host, true]);
  expect(read('loop.example:8000', known(['*', 'https://loop.example']))).toBe(false);
  expect(read('Loop.example:8000', known(ALL, 'loop.example'))).toBe(false);
  expect(read('evil.example:8000', known(ALL, '0.0.0.0'))).toBe(true);
  // What the server listens as, its own page comes from too.
  const own = { origin: 'http://loop.example:8000', host: 'loop.example:8000' };
  expect(isForeignPage(own, known(ALL, 'loop.example'))).toBe(false);
});

test.each([
  ['http://127.0.0.1:8000', '127.0.0.1:8000'],
  ['http://localhost:8000', 'localhost:8000'],
  ['http://LocalHost:8000', 'LOCALHOST:8000'],
  ['http://[::1]:8000', '[::1]:8000'],
  ['http://[0:0:0:0:0:0:0:1]:8000', '[::1]:8000'],
  ['http://192.168.1.20', '192.168.1.20'],
  ['http://192.168.1.20', '192.168.1.20:80'],
  // TLS ends before the server.
  ['https://192.168.1.20', '192.168.1.20:443'],
  ['https://192.168.1.20', '192.168.1.20'],
])('our own page: %s at %s', (origin, host) => expect(page(origin, host)).toBe(false));

test.each([
  ['another site', 'https://evil.example', '127.0.0.1:8000'],
  ['another port here', 'http://127.0.0.1:3000', '127.0.0.1:8000'],
  ['no port', 'http://127.0.0.1', '127.0.0.1:8000'],
  ['another name of this machine', 'http://localhost:8000', '127.0.0.1:8000'],
  ['the port of the other scheme', 'https://127.0.0.1', '127.0.0.1:80'],
  ['a name that leads here (DNS rebinding)', 'http://evil.example:8000', 'evil.example:8000'],
  ['a name with an address in it', 'http://127.0.0.1.evil.example:8000', '127.0.0.1.evil.example:8000'],
  ['a name below localhost', 'http://localhost.evil.example', 'localhost.evil.example'],
  ['a sandboxed frame or a file', 'null', '127.0.0.1:8000'],
  ['an app that calls itself localhost', 'capacitor://localhost', 'localhost'],
  ['an extension', 'chrome-extension://abcdef', 'abcdef'],
  ['an empty one', '', ''],
  ['two of them', 'http://127.0.0.1:8000, http://evil.example', '127.0.0.1:8000'],
  ['a name before the host', 'http://127.0.0.1:8000@evil.example', '127.0.0.1:8000@evil.example'],
  ['a star', '*', '127.0.0.1:8000'],
])('foreign: %s', (_what, origin, host) => expect(page(origin, host)).toBe(true));

test('listed origins are no strangers, whatever they are served from; stars and null are no names', () => {
  const listed = ['*', 'https://App.example/', 'http://myhost:8000', 'null', 'app://notes'];
  expect(page('https://app.example', '127.0.0.1:8000', listed)).toBe(false);
  expect(page('app://notes', '127.0.0.1:8000', listed)).toBe(false);
  expect(page('http://myhost:8000', 'myhost:8000', listed)).toBe(false);
  // The name is listed, and the page came from where the request goes.
  expect(page('https://myhost', 'myhost', listed)).toBe(false);
  expect(page('http://myhost:9000', 'myhost:8000', listed)).toBe(true);
  expect(page('https://app.example.evil.example', '127.0.0.1:8000', listed)).toBe(true);
  expect(page('http://app.example', '127.0.0.1:8000', listed)).toBe(true);
  expect(page('null', '127.0.0.1:8000', listed)).toBe(true);
});

test('reads have no origin: the browser says how far its page is', () => {
  const from = (site: string, host = '127.0.0.1:8000', listed = ALL): boolean =>
    isForeignPage({ 'sec-fetch-site': site, host }, known(listed));
  for (const site of ['cross-site', 'same-site', 'what comes next']) expect(from(site)).toBe(true);
  for (const site of ['same-origin', 'none']) expect(from(site)).toBe(false);
  for (const site of ['same-origin', 'none']) expect(from(site, 'evil.example')).toBe(true);
  expect(from('same-origin', 'loop.example', ['https://loop.example'])).toBe(false);
  // An origin says more.
  const listed = { origin: 'https://app.example', host: '127.0.0.1:8000', 'sec-fetch-site': 'cross-site' };
  expect(isForeignPage(listed, known(['https://app.example']))).toBe(false);
});

test('no domain name is our own by agreeing with itself, and naming it makes it so', () =>
  fc.assert(
    fc.property(fc.domain(), fc.integer({ min: 1, max: 65_535 }), (domain, port) => {
      const host = `${domain}:${port}`;
      const origin = `http://${host}`;
      expect(isSameHost({ origin, host })).toBe(true);
      expect(page(origin, host.toUpperCase())).toBe(true);
      expect(isListed(origin, [origin.toUpperCase()])).toBe(true);
      expect(page(origin, host, [origin])).toBe(false);
      expect(isForeignPage({ host }, known())).toBe(true);
      expect(isForeignPage({ host }, known([origin]))).toBe(false);
    }),
  ));

test('every address is our own where page and request agree', () =>
  fc.assert(
    fc.property(
      fc.oneof(
        fc.ipV4(),
        fc.ipV6().map((address) => `[${address}]`),
      ),
      fc.integer({ min: 1, max: 65_535 }),
      (address, port) => {
        const host = `${address}:${port}`;
        expect(page(`http://${host}`, host)).toBe(false);
        expect(page(`http://${address}:${(port % 65_535) + 1}`, host)).toBe(true);
      },
    ),
  ));
