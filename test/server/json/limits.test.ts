import fc from 'fast-check';
import { assertSimple } from '../../../src/server/json/limits.js';

const check = (text: string) => assertSimple(Buffer.from(text));

test('every JSON of ordinary depth passes', () => {
  fc.assert(fc.property(fc.json({ maxDepth: 20 }), (text) => check(text)));
});

test('brackets in strings do not count', () => {
  expect(() => check(JSON.stringify({ text: `${'[{'.repeat(500)}"\\`, more: '\\"[[' }))).not.toThrow();
  expect(() => check(`"${','.repeat(1_000_000)}"`)).not.toThrow();
});

test('deep or crowded bodies are refused', () => {
  expect(() => check('['.repeat(64) + ']'.repeat(64))).not.toThrow();
  expect(() => check('['.repeat(65))).toThrow('at most 64 nested levels');
  expect(() => check('{"a":'.repeat(1_000_000))).toThrow('at most 64 nested levels');
  expect(() => check(`[${'1,'.repeat(250_000)}1]`)).not.toThrow();
  expect(() => check(`[${'1,'.repeat(250_001)}1]`)).toThrow('at most 250000 values');
});

test('text that is no JSON ends', () => {
  for (const text of ['', '"', '"\\', ']]]]', '{{', '\\"']) expect(() => check(text)).not.toThrow();
});
