// A client that reads slowly or not at all holds up its own rollout and nothing else.

import { eventually } from '../../support/eventually.js';
import type { Script } from '../../support/scripted-runner.js';
import { postBytes, slowPost, slowSend } from '../../support/slow-client.js';
import { post, QUESTION, startTestServer, type TestServer } from '../../support/test-server.js';
import { UPGRADE } from '../../support/upgrade.js';

const PATH = '/v1/chat/completions';
const TEXT = 'x'.repeat(64 * 1024);
/** Twice what two kernels hold of a connection between them. */
const EVENTS = 320;
const long: Script = (request) =>
  request.method === 'direct' ? [{ answer: 'quick' }] : Array(EVENTS).fill({ noise: TEXT });

let server: TestServer;
afterEach(() => server.close());

test('a stalled reader pauses its rollout near the mark; others go on; it gets all when it reads again', async () => {
  server = await startTestServer({
    script: long,
    server: { streamBufferBytes: 1024 * 1024, reasoningFields: 'reasoning' },
  });
  const before = process.memoryUsage().rss;
  const client = await slowPost(server.url, PATH, { ...QUESTION, stream: true });
  let seen = -1;
  await eventually(() => {
    const now = server.runner.yielded;
    const still = now === seen && now > 0;
    seen = now;
    return still;
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  // One megabyte and what the two kernels hold.
  expect(server.runner.yielded).toBeLessThan(0.7 * EVENTS);
  expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  const other = await post(server.url + PATH, { ...QUESTION, model: 'searchloop:direct' });
  expect(other.status).toBe(200);
  client.resume();
  await client.closed;
  expect(client.text().split(TEXT).length - 1).toBe(EVENTS);
  expect(client.text()).toContain('data: [DONE]');
  expect(server.runner.ends.sort()).toEqual(['done', 'done']);
});

test('one that reads nothing for too long is cut off and its rollout ended', async () => {
  server = await startTestServer({ script: long, server: { slowReaderTimeoutMs: 1000 } });
  const client = await slowPost(server.url, PATH, { ...QUESTION, stream: true });
  await eventually(() => server.runner.running === 1);
  await eventually(() => server.runner.running === 0);
  expect(server.runner.ends).toEqual(['stopped']);
  client.resume();
  await client.closed;
  expect(client.text()).not.toContain('[DONE]');
});

test('one that reads so little that others would wait for its place is cut off, though it never stops', async () => {
  server = await startTestServer({ script: long, server: { slowReaderTimeoutMs: 1000 } });
  const client = await slowPost(server.url, PATH, { ...QUESTION, stream: true });
  const trickle = setInterval(() => client.socket.read(), 250);
  await eventually(() => server.runner.running === 1);
  await eventually(() => server.runner.running === 0);
  clearInterval(trickle);
  expect(server.runner.ends).toEqual(['stopped']);
});

test('one that waits for us is not cut off', async () => {
  server = await startTestServer({
    script: () => [{ answer: 'a' }, { waitMs: 1600 }, { answer: 'b' }],
    server: { slowReaderTimeoutMs: 1000 },
  });
  const response = await post(server.url + PATH, { ...QUESTION, stream: true });
  expect(await response.text()).toContain('[DONE]');
});

test('a client that vanishes while its body is parsed starts nothing that stays', async () => {
  server = await startTestServer({ script: () => [{ until: new Promise(() => {}) }] });
  const body = { ...QUESTION, metadata: { padding: 'x'.repeat(3_000_000) } };
  for (const waitMs of [0, 5, 20, 50, 100]) {
    const client = await slowPost(server.url, PATH, body);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    client.socket.destroy();
  }
  const idle = () => server.runner.running === 0;
  await eventually(idle);
  await new Promise((resolve) => setTimeout(resolve, 500));
  await eventually(idle);
});

test('a client that vanishes ends its rollout', async () => {
  server = await startTestServer({ script: () => [{ answer: 'a' }, { until: new Promise(() => {}) }] });
  for (const stream of [true, false]) {
    const client = await slowPost(server.url, PATH, { ...QUESTION, stream });
    await eventually(() => server.runner.running === 1);
    client.socket.destroy();
    await eventually(() => server.runner.running === 0);
  }
  expect(server.runner.ends).toEqual(['stopped', 'stopped']);
});

const stuck: Script = () => [{ answer: 'a' }, { until: new Promise(() => {}) }];
const streamed = (fields: object = {}): string => postBytes(PATH, { ...QUESTION, stream: true, ...fields });

test('a client that vanishes ends also the rollouts whose answers were to follow on its connection', async () => {
  server = await startTestServer({ script: stuck });
  const client = await slowSend(server.url, streamed() + streamed());
  await eventually(() => server.runner.running === 2);
  client.socket.destroy();
  await eventually(() => server.runner.running === 0);
  expect(server.runner.ends).toEqual(['stopped', 'stopped']);
});

test('an answer that waits too long for its turn on its connection gives its place up', async () => {
  server = await startTestServer({
    script: (request, choice) => (request.seed === 1 ? stuck : long)(request, choice),
    server: { slowReaderTimeoutMs: 1000, streamBufferBytes: TEXT.length },
  });
  const client = await slowSend(server.url, streamed({ seed: 1 }) + streamed());
  await eventually(() => server.runner.ends.length === 1);
  expect([server.runner.ends, server.runner.running]).toEqual([['stopped'], 1]);
  client.socket.destroy();
  await eventually(() => server.runner.running === 0);
});

test('a WebSocket that is asked for behind a long answer holds it up nowhere', async () => {
  server = await startTestServer({
    script: () => Array(20).fill({ noise: TEXT }),
    server: { streamBufferBytes: 1024 },
  });
  // A close frame, masked with zeros: the server answers it and hangs up.
  const close = '\x88\x80\0\0\0\0';
  const client = await slowSend(server.url, Buffer.from(`${streamed()}${UPGRADE}\r\n\r\n${close}`, 'latin1'));
  client.resume();
  await client.closed;
  expect(client.text()).toMatch(/data: \[DONE\][\s\S]*HTTP\/1.1 101 /);
});
