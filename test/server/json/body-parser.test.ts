import { createBodyParser } from '../../../src/server/json/body-parser.js';
import { createLogger } from '../../../src/telemetry/index.js';

const parser = createBodyParser(
  { retrieve: { maxQueries: 10, defaultTopK: 3 } },
  () => 1_000_000,
  createLogger({ level: 'silent' }),
);
afterAll(() => parser.close());

const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value));
const chat = (content: string) => ({ model: 'searchloop', messages: [{ role: 'user', content }] });

test('small and big bodies give the same', async () => {
  for (const length of [10, 300_000]) {
    const content = 'é'.repeat(length);
    const parsed = await parser.parse('chat', bytesOf({ ...chat(content), temperature: 0.5, stop: 'x' }));
    expect(parsed).toMatchObject({
      ok: true,
      value: { temperature: 0.5, stop: ['x'], messages: [{ role: 'user', content }], logit_bias: {} },
    });
  }
});

test('faults cross from the worker with code and field', async () => {
  const big = 'x'.repeat(100_000);
  const faultOf = async (bytes: Uint8Array) => {
    const parsed = await parser.parse('chat', bytes);
    return parsed.ok ? null : [parsed.fault.code, parsed.fault.param];
  };
  expect(await faultOf(bytesOf({ ...chat(big), n: 0 }))).toEqual(['invalid_request', 'n']);
  expect(await faultOf(Buffer.from(`{"a":"${big}`))).toEqual(['invalid_json', null]);
  expect(await faultOf(Buffer.concat([bytesOf(chat(big)), Buffer.from([0xff])]))).toEqual([
    'invalid_json',
    null,
  ]);
  expect(await faultOf(Buffer.from('['.repeat(5_000_000)))).toEqual(['invalid_json', null]);
});

test('messages that are too long for sure stay in the worker; their length comes', async () => {
  const body = chat('é'.repeat(600_000));
  const expected = { messages: [], promptBytes: 1_200_000, model: 'searchloop' };
  expect(await parser.parse('chat', bytesOf(body))).toMatchObject({ ok: true, value: expected });
  expect(await parser.parse('frame', bytesOf({ type: 'request', id: 'a', body }))).toMatchObject({
    ok: true,
    value: { id: 'a', body: { ok: true, value: expected } },
  });
});

test('the HTTP thread goes on while a crowded body is parsed', async () => {
  const crowded = Buffer.from(`{"messages":[${'{"a":1},'.repeat(120_000)}1]}`);
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const parsed = await parser.parse('chat', crowded);
  clearInterval(timer);
  expect(parsed.ok).toBe(false);
  expect(turns).toBeGreaterThan(2);
});

test('a view on a shared buffer is left intact', async () => {
  const body = bytesOf(chat('x'.repeat(100_000)));
  const shared = Buffer.concat([Buffer.from('keep'), body]);
  expect((await parser.parse('chat', shared.subarray(4))).ok).toBe(true);
  expect(shared.subarray(0, 4).toString()).toBe('keep');
});

test('bodies of the other kinds', async () => {
  expect(await parser.parse('retrieve', bytesOf({ queries: ['a', 'b'] }))).toEqual({
    ok: true,
    value: { queries: ['a', 'b'], topk: 3, returnScores: false },
  });
  expect(await parser.parse('retrieve', bytesOf({ queries: Array(11).fill('a') }))).toMatchObject({
    ok: false,
    fault: { param: 'queries' },
  });
  expect(await parser.parse('frame', bytesOf({ type: 'cancel', id: 'a' }))).toEqual({
    ok: true,
    value: { type: 'cancel', id: 'a' },
  });
  expect(await parser.parse('frame', bytesOf({ type: 'request', id: 'a', body: { n: 0 } }))).toMatchObject({
    ok: true,
    value: { id: 'a', body: { ok: false, fault: { param: 'model' } } },
  });
  expect(await parser.parse('frame', bytesOf({ type: 'x', id: 'a' }))).toMatchObject({
    fault: { param: 'type' },
  });
});
