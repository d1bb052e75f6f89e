import type { OpDefinition } from '../op.js';

/** Sizes of all axes, int64 [rank]. Known as a shape to the operations that take one. */
export const shape = {
  type: 'Shape',
  domain: '',
  arity: [1, 1],
  attributes: {},
  infer: (call) => [{ type: 'int64', shape: [call.input(0).shape.length] }],
} satisfies OpDefinition;
