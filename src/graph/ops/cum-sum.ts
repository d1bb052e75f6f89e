import type { OpDefinition } from '../op.js';

/** Running sum along the axis that a constant int64 scalar names, the element itself included. */
export const cumSum = {
  type: 'CumSum',
  domain: '',
  arity: [2, 2],
  attributes: {},
  infer(call) {
    const x = call.input(0, 'float32', 'int64');
    call.axis(call.constantIntegers(1)[0] ?? 0, x.shape.length);
    return [{ type: x.type, shape: x.shape }];
  },
} satisfies OpDefinition;
