import { sumOf } from '../dimension.js';
import type { OpDefinition } from '../op.js';

/** Joins tensors along `axis`; all other axes must agree. */
export const concat = {
  type: 'Concat',
  domain: '',
  arity: [1, Number.POSITIVE_INFINITY],
  attributes: { axis: 'int' },
  infer(call) {
    const first = call.input(0);
    const axis = call.axis(call.int('axis'), first.shape.length);
    const parts = Array.from({ length: call.inputCount }, (_, index) => call.input(index, first.type));
    for (const [index, part] of parts.entries())
      call.expectShape(index, first.shape.with(axis, part.shape[axis] ?? 0));
    const joined = sumOf(parts.map((part) => part.shape[axis] ?? 0));
    return [{ type: first.type, shape: first.shape.with(axis, joined) }];
  },
} satisfies OpDefinition;
