import fc from 'fast-check';
import { isHeavy, jsonInTurns, jsonPieces } from '../../../src/server/json/pieces.js';

const joined = (value: unknown) => [...jsonPieces(value)].join('');

test('the pieces join to what JSON.stringify gives', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.nat(3), (value, times) => {
      // Many copies make it heavy at several levels.
      const big = { a: Array(10 ** times).fill(value), b: undefined, c: [], d: { e: value, f: {} } };
      expect(joined(big)).toBe(JSON.stringify(big));
    }),
    { numRuns: 60 },
  );
});

test('a heavy list inside a list, holes and empty values', () => {
  const row = Array.from({ length: 5000 }, (_, at) => ({ at, text: 'é"\ud800' }));
  for (const value of [
    [row, [], row],
    [undefined, row, null, undefined],
    { '': row, b: [[row]] },
    [],
    {},
    'x',
    1,
  ])
    expect(joined(value)).toBe(JSON.stringify(value));
});

test('no piece is far longer than the others, however the value is built', () => {
  const entry = { token: ' the', logprob: -0.25, bytes: [32, 116, 104, 101] };
  const content = Array(4000).fill({ ...entry, top_logprobs: Array(20).fill(entry) });
  const pieces = [...jsonPieces({ choices: [{ logprobs: { content } }] })];
  expect(pieces.length).toBeGreaterThan(20);
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(512 * 1024);
});

test('what is small goes out whole', () => {
  expect(isHeavy({ a: Array(1000).fill(1) })).toBe(false);
  expect(isHeavy({ a: Array(5000).fill(1) })).toBe(true);
  expect(isHeavy(['x'.repeat(1_000_000)])).toBe(true);
});

test('in turns: the same text, and others come in between', async () => {
  const value = { passages: Array(10).fill({ text: 'é'.repeat(200_000) }) };
  let turns = 0;
  const count = (): void => {
    turns += 1;
    setImmediate(count).unref();
  };
  setImmediate(count).unref();
  expect(await jsonInTurns(value)).toBe(JSON.stringify(value));
  expect(turns).toBeGreaterThan(5);
});
