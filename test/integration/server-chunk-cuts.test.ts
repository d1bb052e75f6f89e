// However the bytes of a stream are cut on their way, the official client sees the same.

import fc from 'fast-check';
import OpenAI from 'openai';
import { passage, type Script } from '../support/scripted-runner.js';
import { post, QUESTION, startTestServer } from '../support/test-server.js';

const PARIS = passage('12', 'Πarís 🫠', 'Text with "quotes", \\ and \u2028.');
const script: Script = (_, choice) => [
  { think: `dénk\n\n${choice}` },
  { search: 'data: [DONE]\n\n', passages: [PARIS] },
  { waitMs: 1 },
  { answer: '漢 🫠\r\n' },
  { finish: 'stop', citations: [{ passage: PARIS, start: 0, end: 2 }] },
];

/** The real bytes of one stream, with a comment inside. */
async function record(): Promise<Uint8Array> {
  const server = await startTestServer({ script });
  const body = { ...QUESTION, n: 2, stream: true, logprobs: true, stream_options: { include_usage: true } };
  const bytes = new Uint8Array(await (await post(`${server.url}/v1/chat/completions`, body)).arrayBuffer());
  await server.close();
  const middle = Buffer.from(bytes).indexOf('\n\n') + 2;
  return Buffer.concat([bytes.subarray(0, middle), Buffer.from(': keep-alive\n\n'), bytes.subarray(middle)]);
}

/** What the client makes of the bytes when they come in these pieces. */
async function readBack(bytes: Uint8Array, cuts: readonly number[]): Promise<unknown[]> {
  const borders = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  const pieces = borders.slice(1).map((end, at) => bytes.slice(borders[at], end));
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces.shift();
      if (piece === undefined) controller.close();
      else if (piece.length > 0) controller.enqueue(piece);
      else this.pull?.(controller);
    },
  });
  const client = new OpenAI({
    apiKey: 'x',
    fetch: async () => new Response(stream as never, { headers: { 'content-type': 'text/event-stream' } }),
  });
  const chunks: unknown[] = [];
  const answer = await client.chat.completions.create({
    model: 'searchloop',
    messages: [],
    n: 2,
    stream: true,
  });
  for await (const chunk of answer) chunks.push(chunk);
  return chunks;
}

test('any cut gives the same chunks', async () => {
  const bytes = await record();
  const whole = await readBack(bytes, []);
  expect(whole.length).toBeGreaterThan(20);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: bytes.length }), { maxLength: 40 }), async (cuts) => {
      expect(await readBack(bytes, cuts)).toEqual(whole);
    }),
    { numRuns: 20 },
  );
  const everyByte = Array.from({ length: bytes.length }, (_, at) => at);
  expect(await readBack(bytes, everyByte)).toEqual(whole);
});
