import type { OpDefinition } from '../op.js';

/** y = gelu(x + bias), gelu(z) = z / 2 * (1 + erf(z / sqrt 2)), the exact form; bias over the last axis. */
export const biasGelu = {
  type: 'BiasGelu',
  domain: 'com.microsoft',
  arity: [2, 2],
  attributes: {},
  infer(call) {
    const x = call.input(0, 'float32');
    call.input(1, 'float32');
    call.expectShape(1, x.shape.slice(-1));
    return [{ type: 'float32', shape: x.shape }];
  },
} satisfies OpDefinition;
