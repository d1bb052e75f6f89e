import type { OpDefinition } from '../op.js';

/** y = (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis; scale and bias [D]. */
export const layerNormalization = {
  type: 'LayerNormalization',
  domain: '',
  arity: [3, 3],
  attributes: { axis: 'int', epsilon: 'float' },
  infer(call) {
    const x = call.input(0, 'float32');
    if (call.axis(call.int('axis'), x.shape.length) !== x.shape.length - 1) call.fail('only the last axis');
    for (const index of [1, 2]) {
      call.input(index, 'float32');
      call.expectShape(index, x.shape.slice(-1));
    }
    return [{ type: 'float32', shape: x.shape }];
  },
} satisfies OpDefinition;
