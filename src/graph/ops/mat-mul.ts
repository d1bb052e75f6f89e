import { broadcastOf } from '../dimension.js';
import type { OpDefinition } from '../op.js';
import { productGradients } from './product-gradients.js';

/** c = a b: a [..., M, K], b [..., K, N] or [K, N]; the leading axes broadcast. */
export const matMul = {
  type: 'MatMul',
  domain: '',
  arity: [2, 2],
  attributes: {},
  infer(call) {
    const a = call.input(0, 'float32');
    const b = call.input(1, 'float32');
    if (a.shape.length < 2 || b.shape.length < 2) call.fail('both inputs need two axes or more');
    const [rows, inner] = a.shape.slice(-2);
    const [innerOfB, columns] = b.shape.slice(-2);
    if (inner !== innerOfB) call.fail('inner dimensions differ');
    const leading =
      broadcastOf(a.shape.slice(0, -2), b.shape.slice(0, -2)) ?? call.fail('leading axes do not broadcast');
    return [{ type: 'float32', shape: [...leading, rows!, columns!] }];
  },
  gradient: (call) => productGradients(call, { alpha: 1, transA: 0, transB: 0 }),
} satisfies OpDefinition;
