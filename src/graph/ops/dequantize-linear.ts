import type { OpDefinition } from '../op.js';

/** y = x scale: int8 x [R, C], a scale for each row f32 [R]. */
export const dequantizeLinear = {
  type: 'DequantizeLinear',
  domain: '',
  arity: [2, 2],
  attributes: { axis: 'int' },
  infer(call) {
    const x = call.input(0, 'int8');
    if (x.shape.length !== 2 || call.int('axis') !== 0) call.fail('only by the rows of a matrix');
    call.input(1, 'float32');
    call.expectShape(1, x.shape.slice(0, 1));
    return [{ type: 'float32', shape: x.shape }];
  },
} satisfies OpDefinition;
