// Clients of GET /v1/stream that send or read in ways no honest client does.

import { createConnection, type Socket } from 'node:net';
import { eventually } from '../../support/eventually.js';
import { post, QUESTION, startTestServer, type TestServer } from '../../support/test-server.js';
import { UPGRADE } from '../../support/upgrade.js';

let server: TestServer;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close();
});

interface RawClient {
  readonly socket: Socket;
  /** What came after the upgrade. */
  received(): Buffer;
  readonly closed: Promise<void>;
}

async function open(): Promise<RawClient> {
  const socket = createConnection(Number(new URL(server.url).port), '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.write(`${UPGRADE}\r\n\r\n`);
  await new Promise((resolve) => socket.once('data', resolve));
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  return { socket, received: () => Buffer.concat(chunks), closed };
}

/** A frame masked with zeros. */
function frame(opcode: number, text: string): Buffer {
  const payload = Buffer.from(text);
  const length =
    payload.length < 126 ? [0x80 | payload.length] : [0xfe, payload.length >> 8, payload.length & 0xff];
  return Buffer.concat([Buffer.from([0x80 | opcode, ...length, 0, 0, 0, 0]), payload]);
}
const [TEXT, PING] = [1, 9];
const times = (count: number, bytes: Buffer) => Buffer.concat(Array<Buffer>(count).fill(bytes));

/** Counts turns of the event loop until `until` settles. */
async function turnsDuring(until: Promise<unknown>): Promise<number> {
  let turns = 0;
  let counting = true;
  const count = (): void => {
    turns += 1;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  await until;
  counting = false;
  return turns;
}

test('frames without sense: a few are answered, then the client is sent away', async () => {
  server = await startTestServer();
  const client = await open();
  client.socket.write(times(20_000, frame(TEXT, '{')));
  await client.closed;
  const text = client.received().toString('latin1');
  expect(text.match(/invalid_json/g)).toHaveLength(64);
  // 1008, as the close frame says it.
  expect(text).toContain('\x03\xf064 frames could not be read');
  expect((await post(`${server.url}/v1/chat/completions`, QUESTION)).status).toBe(200);
});

test('many frames that came together each get a turn of their own', async () => {
  server = await startTestServer();
  const client = await open();
  const cancels = times(1000, frame(TEXT, '{"type":"cancel","id":"none"}'));
  client.socket.write(Buffer.concat([cancels, frame(TEXT, '{"type":"last"}')]));
  const turns = await turnsDuring(eventually(() => client.received().includes('"type":"error"')));
  expect(turns).toBeGreaterThanOrEqual(1000);
});

test('pings whose answers nobody reads end the socket instead of filling memory', async () => {
  server = await startTestServer({ server: { streamBufferBytes: 1024, streamBufferHardBytes: 64 * 1024 } });
  const client = await open();
  client.socket.write(frame(PING, 'hello'));
  await eventually(() => client.received().includes('hello'));
  client.socket.pause();
  const pings = times(1000, frame(PING, 'x'.repeat(120)));
  let sent = 0;
  let ended = false;
  void client.closed.then(() => (ended = true));
  client.socket.on('error', () => (ended = true));
  // The two kernels hold some megabytes.
  while (!ended && sent < 400) {
    await new Promise<void>((resolve) => client.socket.write(pings, () => resolve()));
    sent += 1;
  }
  expect(ended).toBe(true);
});

test('one that reads too little for too long is closed, though it never stops', async () => {
  server = await startTestServer({
    script: () => Array(2000).fill({ noise: 'x'.repeat(64 * 1024) }),
    server: { slowReaderTimeoutMs: 1000 },
  });
  const client = await open();
  client.socket.pause();
  client.socket.write(frame(TEXT, JSON.stringify({ type: 'request', id: 'a', body: QUESTION })));
  const trickle = setInterval(() => client.socket.read(), 250);
  await eventually(() => server.runner.running === 1);
  await eventually(() => server.runner.running === 0);
  clearInterval(trickle);
  expect(server.runner.ends).toEqual(['stopped']);
});
