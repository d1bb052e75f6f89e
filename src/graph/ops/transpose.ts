import type { OpDefinition } from '../op.js';

/** Axes in another order: axis i of the result is axis perm[i] of x. */
export const transpose = {
  type: 'Transpose',
  domain: '',
  arity: [1, 1],
  attributes: { perm: 'ints' },
  infer(call) {
    const x = call.input(0);
    const perm = call.attributes['perm'] as readonly number[];
    if ([...perm].sort((a, b) => a - b).join() !== [...x.shape.keys()].join())
      call.fail(`perm [${perm}] does not name each axis once`);
    return [{ type: x.type, shape: perm.map((axis) => x.shape[axis]!) }];
  },
  gradient: (call) => [
    () => {
      const perm = call.attributes['perm'] as readonly number[];
      return call.op('Transpose', [call.dy], { perm: perm.map((_, axis) => perm.indexOf(axis)) });
    },
  ],
} satisfies OpDefinition;
