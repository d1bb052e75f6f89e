// Gradients of matrix products, for both spellings.

import type { GradientCall } from '../gradient-call.js';
import type { Value } from '../value.js';

export interface ProductForm {
  readonly alpha: number;
  readonly transA: number;
  readonly transB: number;
}

/**
 * c = alpha op(a) op(b), op turning the last two axes round where its flag says so:
 *   d op(a) = alpha dc op(b)^T,  d op(b) = alpha op(a)^T dc
 * One matrix b used for all leading axes of a: these are rows like any other, so that one product does.
 */
export function productGradients(call: GradientCall, { alpha, transA, transB }: ProductForm) {
  const { dy } = call;
  const [a, b] = [call.input(0), call.input(1)];
  const product = (left: Value, right: Value, turnLeft: number, turnRight: number): Value =>
    call.op('FusedMatMul', [left, right], { alpha, transA: turnLeft, transB: turnRight });
  const rows = (x: Value): Value =>
    x.shape.length === 2
      ? x
      : call.op('Reshape', [x, call.graph.integers([-1, ...call.target(x.shape.slice(-1))])]);
  const oneB = b.shape.length === 2 && a.shape.length > 2 && transA === 0;
  return [
    () => (transA ? product(b, dy, transB, 1) : product(dy, b, 0, transB ? 0 : 1)),
    () => {
      if (oneB) return transB ? product(rows(dy), rows(a), 1, 0) : product(rows(a), rows(dy), 1, 0);
      return transB ? product(dy, a, 1, transA) : product(a, dy, transA ? 0 : 1, 0);
    },
  ];
}
