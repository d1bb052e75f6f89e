import type { OpDefinition } from '../op.js';

/**
 * y = alpha a b + c, `transA` and `transB` turning their matrix round; c has the shape of y and may be its memory, or is a
 * column that is added to each of y's.
 */
export const gemm = {
  type: 'Gemm',
  domain: '',
  arity: [3, 3],
  attributes: { transA: 'int?', transB: 'int?', alpha: 'float?' },
  infer(call) {
    const left = [...call.input(0, 'float32').shape];
    const right = [...call.input(1, 'float32').shape];
    if (left.length !== 2 || right.length !== 2) call.fail('the first two inputs must be matrices');
    if (call.int('transA', 0) === 1) left.reverse();
    if (call.int('transB', 0) === 1) right.reverse();
    if (left[1] !== right[0]) call.fail('inner dimensions differ');
    const shape = [left[0]!, right[1]!];
    const added = call.input(2, 'float32').shape;
    call.expectShape(2, added[1] === 1 ? [shape[0]!, 1] : shape);
    return [{ type: 'float32', shape }];
  },
} satisfies OpDefinition;
