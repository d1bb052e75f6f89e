// A few hundred of the bodies that `npm run bench -- fuzz` fires by the thousand.

import { fireFuzz } from '../../bench/fuzz/fire.js';
import { passage, type Script } from '../support/scripted-runner.js';
import { startTestServer, type TestServer } from '../support/test-server.js';

/** Says back what it was asked, so that odd text goes all the way through. */
const parrot: Script = (request) => {
  const text = request.messages
    .map((message) => message.content)
    .join(' ')
    .slice(0, 500);
  const found = passage(text, text, text);
  return [
    { think: text },
    { search: text, passages: [found] },
    { answer: text },
    { finish: 'stop', citations: text === '' ? [] : [{ passage: found, start: 0, end: text.length }] },
  ];
};

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ script: parrot });
});
afterAll(() => server.close());

test('no body makes a 5xx, a hang or a broken answer', async () => {
  const { statuses, faults } = await fireFuzz({
    url: server.url,
    count: 300,
    seed: 20_260_801,
    concurrency: 8,
    timeoutMs: 30_000,
  });
  expect(faults).toEqual([]);
  expect(statuses[200]).toBeGreaterThan(30);
  expect(statuses[400]).toBeGreaterThan(30);
  expect(server.runner.running).toBe(0);
});
