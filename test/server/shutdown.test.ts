import { once } from 'node:events';
import { connect } from 'node:net';
import { WebSocket } from 'ws';
import type { LoopControl } from '../../src/loop/index.js';
import { eventually } from '../support/eventually.js';
import type { Script } from '../support/scripted-runner.js';
import { slowPost } from '../support/slow-client.js';
import { post, QUESTION, sseData, startTestServer } from '../support/test-server.js';

const PATH = '/v1/chat/completions';

test('running answers finish; new requests are refused', async () => {
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const script: Script = () => [{ answer: 'a' }, { until: gate }, { answer: 'b' }];
  const server = await startTestServer({ script, server: { shutdownGraceMs: 20_000 } });
  const stream = await post(server.url + PATH, { ...QUESTION, stream: true });
  const plain = post(server.url + PATH, QUESTION);
  await eventually(() => server.runner.running === 2);
  const closed = server.close();
  await expect(fetch(`${server.url}/healthz`)).rejects.toThrow();
  release();
  const data = sseData(await stream.text());
  expect(data.at(-1)).toBe('[DONE]');
  expect(JSON.parse(data.at(-2)!)).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
  expect(await (await plain).json()).toMatchObject({ choices: [{ message: { content: 'ab' } }] });
  await closed;
});

test('what is left after the grace ends with an error, not with a finish reason', async () => {
  const script: Script = () => [{ answer: 'a' }, { until: new Promise(() => {}) }];
  const server = await startTestServer({ script, server: { shutdownGraceMs: 50 } });
  const stream = await post(server.url + PATH, { ...QUESTION, stream: true });
  const plain = post(server.url + PATH, QUESTION);
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1/stream`);
  const frames: Record<string, unknown>[] = [];
  socket.on('message', (text) => frames.push(JSON.parse(String(text))));
  socket.on('open', () => socket.send(JSON.stringify({ type: 'request', id: 'r', body: QUESTION })));
  const code = new Promise<number>((resolve) => socket.on('close', resolve));
  await eventually(() => server.runner.running === 3);
  const closed = server.close();
  await eventually(() => frames.some((frame) => frame['type'] === 'answer.delta'));
  const data = sseData(await stream.text());
  expect(JSON.parse(data.at(-2)!)).toMatchObject({ error: { code: 'shutting_down' } });
  const answer = await plain;
  expect([answer.status, await answer.json()]).toMatchObject([503, { error: { code: 'shutting_down' } }]);
  expect(await code).toBe(1001);
  expect(frames.at(-1)).toMatchObject({ id: 'r', type: 'error', error: { code: 'shutting_down' } });
  await closed;
  await server.close();
  expect(server.runner.running).toBe(0);
});

test('an address that cannot be had is told in words', async () => {
  const first = await startTestServer();
  const port = Number(new URL(first.url).port);
  await expect(startTestServer({ server: { port } })).rejects.toMatchObject({
    code: 'unavailable',
    message: `cannot listen on 127.0.0.1 port ${port}: another process listens there; --port chooses another port, 0 any free one`,
  });
  await expect(startTestServer({ server: { host: '192.0.2.1' } })).rejects.toThrow('--host chooses another');
  await first.close();
});

test('an answer that is complete but not all sent is sent to its end', async () => {
  // Twice what two kernels hold of a connection between them.
  const script: Script = () => Array(320).fill({ noise: 'x'.repeat(64 * 1024) });
  const server = await startTestServer({
    script,
    server: {
      shutdownGraceMs: 20_000,
      streamBufferBytes: 1 << 30,
      streamBufferHardBytes: 1 << 30,
      reasoningFields: 'reasoning',
    },
  });
  const client = await slowPost(server.url, PATH, { ...QUESTION, stream: true });
  await eventually(() => server.runner.ends.length === 1);
  const closed = server.close();
  client.resume();
  await client.closed;
  expect(client.text()).toContain('data: [DONE]');
  await closed;
});

test.each(['/nowhere', '/v1/stream'])(
  'a refused upgrade to %s whose client never ends its side holds up no stop',
  async (path) => {
    const server = await startTestServer();
    const port = Number(new URL(server.url).port);
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    // Without the key that a WebSocket has.
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n`);
    socket.resume();
    await once(socket, 'end');
    await server.close();
    socket.destroy();
  },
);

test('a step of the loop that was ordered is not waited for', async () => {
  let stepping = false;
  const step = (): Promise<never> => {
    stepping = true;
    return new Promise(() => {});
  };
  const server = await startTestServer({
    loop: () => ({ step }) as unknown as LoopControl,
    server: { shutdownGraceMs: 600_000 },
  });
  const ordered = post(`${server.url}/admin/loop/step`, {});
  await eventually(() => stepping);
  const closed = server.close();
  const answer = await ordered;
  expect([answer.status, await answer.json()]).toMatchObject([503, { error: { code: 'shutting_down' } }]);
  await closed;
});
