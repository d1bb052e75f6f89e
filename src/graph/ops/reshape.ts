import { type Dimension, productOf, quotientOf } from '../dimension.js';
import type { OpDefinition } from '../op.js';

/** The same elements in another shape: 0 copies the axis of the input, one -1 takes what is left. */
export const reshape = {
  type: 'Reshape',
  domain: '',
  arity: [2, 2],
  attributes: {},
  infer(call) {
    const x = call.input(0);
    const target = call.constantIntegers(1);
    const known: Dimension[] = target.map((size, axis) =>
      size === 0 ? (x.shape[axis] ?? call.fail(`there is no axis ${axis} to copy`)) : size,
    );
    const open = target.indexOf(-1);
    const stated = productOf(known.filter((_, axis) => axis !== open));
    const rest =
      quotientOf(productOf(x.shape), stated) ?? call.fail(`cannot be reshaped to [${target.join(',')}]`);
    if (open < 0 && rest !== 1) call.fail(`cannot be reshaped to [${target.join(',')}]`);
    return [{ type: x.type, shape: open < 0 ? known : known.with(open, rest) }];
  },
  gradient: (call) => [() => call.reshape(call.dy, call.input(0)), null],
} satisfies OpDefinition;
