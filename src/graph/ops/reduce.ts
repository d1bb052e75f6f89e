// Shape rule of reductions: float32, axes from a constant, kept as 1 unless `keepdims` is 0.

import type { GradientRule } from '../gradient-call.js';
import type { OpDefinition } from '../op.js';

export function reduction<Type extends string>(type: Type, gradient?: GradientRule) {
  return {
    type,
    domain: '',
    arity: [2, 2],
    attributes: { keepdims: 'int' },
    infer(call) {
      const x = call.input(0, 'float32');
      const axes = call.constantIntegers(1).map((axis) => call.axis(axis, x.shape.length));
      const kept = x.shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
      const shape = call.int('keepdims') === 1 ? kept : kept.filter((_, axis) => !axes.includes(axis));
      return [{ type: 'float32', shape }];
    },
    ...(gradient && { gradient }),
  } satisfies OpDefinition;
}

/** The gradient of a sum, spread over the axes that were summed. */
export const spread: GradientRule = (call) => [
  () => {
    const x = call.input(0);
    const axes = call.graph
      .integersOf(call.input(1))
      .map((axis) => (axis < 0 ? axis + x.shape.length : axis));
    const kept = x.shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
    const dy =
      call.attributes['keepdims'] === 1
        ? call.dy
        : call.op('Reshape', [call.dy, call.graph.integers(call.target(kept))]);
    return call.op('Expand', [dy, call.op('Shape', [x])]);
  },
  null,
];
