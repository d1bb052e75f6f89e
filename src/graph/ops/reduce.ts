// Shape rule of reductions: float32, axes from a constant, kept as 1 unless `keepdims` is 0.

import type { OpDefinition } from '../op.js';

export function reduction<Type extends string>(type: Type) {
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
  } satisfies OpDefinition;
}
