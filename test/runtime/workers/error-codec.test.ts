import * as errors from '../../../src/errors.js';
import { decodeError, encodeError } from '../../../src/runtime/workers/error-codec.js';

const samples: Readonly<Record<string, () => errors.SearchloopError>> = {
  SearchloopError: () => new errors.SearchloopError('own_code', 'text', { details: { a: 1, b: null } }),
  InvalidInputError: () => new errors.InvalidInputError('text', 'field', { details: { a: 'x' } }),
  OverloadedError: () => new errors.OverloadedError('text', 250),
};

test.each(Object.entries(errors))('%s survives a crossing', (name, exported) => {
  const Class = exported as unknown as new (message: string, options: object) => Error;
  const error = samples[name]?.() ?? new Class('text', { cause: new RangeError('deep'), details: { n: 2 } });
  const copy = decodeError(structuredClone(encodeError(error)));
  expect(copy).toBeInstanceOf(Class);
  expect(copy.constructor).toBe(Class);
  expect({ ...copy }).toEqual({ ...error });
  expect(copy.name).toBe(name);
  expect(copy.message).toBe('text');
  expect(copy.stack).toBe(error.stack);
  expect((copy.cause as Error | undefined)?.message).toBe((error.cause as Error | undefined)?.message);
});

test('endless chains of causes and odd values do no harm', () => {
  const loop: Error & { self?: unknown; callback?: unknown } = new Error('loop');
  loop.cause = loop;
  loop.self = loop;
  loop.callback = () => {};
  const copy = decodeError(structuredClone(encodeError(loop)));
  let depth = 0;
  for (let cause = copy.cause as Error | undefined; cause; cause = cause.cause as Error | undefined) depth++;
  expect(depth).toBeLessThan(10);
  for (const thrown of [undefined, null, 7, 'x', Symbol('s'), { message: 'm' }])
    expect(decodeError(structuredClone(encodeError(thrown)))).toBeInstanceOf(Error);
});
