import type { OpDefinition } from '../op.js';

/** Slices of `data` along `axis`, picked by int64 `indices`; the axis is replaced by the shape of the indices. */
export const gather = {
  type: 'Gather',
  domain: '',
  arity: [2, 2],
  attributes: { axis: 'int?' },
  infer(call) {
    const data = call.input(0);
    const indices = call.input(1, 'int64');
    const axis = call.axis(call.int('axis', 0), data.shape.length);
    return [
      {
        type: data.type,
        shape: [...data.shape.slice(0, axis), ...indices.shape, ...data.shape.slice(axis + 1)],
      },
    ];
  },
} satisfies OpDefinition;
