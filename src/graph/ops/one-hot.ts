import type { OpDefinition } from '../op.js';

/** Rows of `values[0]` with `values[1]` where an int64 index points: [N], depth D, values [2] to [N, D]. */
export const oneHot = {
  type: 'OneHot',
  domain: '',
  arity: [3, 3],
  attributes: { axis: 'int' },
  infer(call) {
    const indices = call.input(0, 'int64');
    if (call.int('axis') !== -1) call.fail('only the last axis');
    const depth = call.constantIntegers(1)[0] ?? call.fail('depth must be a number');
    call.input(2, 'float32');
    call.expectShape(2, [2]);
    return [{ type: 'float32', shape: [...indices.shape, depth] }];
  },
} satisfies OpDefinition;
