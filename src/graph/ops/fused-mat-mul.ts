import { broadcastOf } from '../dimension.js';
import type { OpDefinition } from '../op.js';
import { productGradients } from './product-gradients.js';

/** c = alpha a b, where `transA` and `transB` turn the last two axes of an input round. */
export const fusedMatMul = {
  type: 'FusedMatMul',
  domain: 'com.microsoft',
  arity: [2, 2],
  attributes: { transA: 'int?', transB: 'int?', alpha: 'float?' },
  infer(call) {
    const a = call.input(0, 'float32');
    const b = call.input(1, 'float32');
    if (a.shape.length < 2 || b.shape.length < 2) call.fail('both inputs need two axes or more');
    const left = a.shape.slice(-2);
    const right = b.shape.slice(-2);
    if (call.int('transA', 0) === 1) left.reverse();
    if (call.int('transB', 0) === 1) right.reverse();
    if (left[1] !== right[0]) call.fail('inner dimensions differ');
    const leading =
      broadcastOf(a.shape.slice(0, -2), b.shape.slice(0, -2)) ?? call.fail('leading axes do not broadcast');
    return [{ type: 'float32', shape: [...leading, left[0]!, right[1]!] }];
  },
  gradient(call) {
    const attribute = (name: string, fallback: number) => Number(call.attributes[name] ?? fallback);
    return productGradients(call, {
      alpha: attribute('alpha', 1),
      transA: attribute('transA', 0),
      transB: attribute('transB', 0),
    });
  },
} satisfies OpDefinition;
