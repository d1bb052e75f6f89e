import fc from 'fast-check';
import { parseStrictJson, type StrictJson, StrictJsonError } from '../../src/weights/strict-json.js';

function plain(value: StrictJson): unknown {
  if (value instanceof Map) {
    const object = Object.create(null) as Record<string, unknown>;
    for (const [key, item] of value) object[key] = plain(item);
    return object;
  }
  return Array.isArray(value) ? value.map(plain) : value;
}

test('agrees with JSON.parse on valid JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(0, 1, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(JSON.stringify(plain(parseStrictJson(text)))).toBe(JSON.stringify(JSON.parse(text)));
    }),
  );
});

test('agrees with JSON.parse on what is not JSON', () => {
  const piece = fc.constantFrom(
    ...'{}[]:,"\\0123456789.-+eE tfn\n\u0000x',
    'true',
    'false',
    'null',
    '"a"',
    '\\u12',
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
      (text) => {
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch {
          expect(() => parseStrictJson(text)).toThrow(StrictJsonError);
          return;
        }
        try {
          expect(JSON.stringify(plain(parseStrictJson(text)))).toBe(JSON.stringify(expected));
        } catch (error) {
          // The one thing that is refused here and not there.
          expect((error as Error).message).toMatch(/stands twice/);
        }
      },
    ),
    { numRuns: 1500 },
  );
});

test('refuses a key that stands twice, with its byte offset', () => {
  const text = '{"é":1,"b":{"a":1,"\\u0061":2}}';
  expect(() => parseStrictJson(text)).toThrow(/"a" stands twice/);
  try {
    parseStrictJson(text);
  } catch (error) {
    expect((error as StrictJsonError).offset).toBe(
      Buffer.byteLength(text.slice(0, text.indexOf('"\\u0061"'))),
    );
  }
});

test('__proto__ is a key like others', () => {
  const value = parseStrictJson('{"__proto__":{"x":1}}') as Map<string, StrictJson>;
  expect([...value.keys()]).toEqual(['__proto__']);
  expect(({} as { x?: number }).x).toBeUndefined();
});

test('depth is bounded and long strings are read', () => {
  expect(() => parseStrictJson('['.repeat(100_000))).toThrow(/deeper/);
  expect(parseStrictJson(JSON.stringify('é'.repeat(1_000_000)))).toHaveLength(1_000_000);
});
