import type { OpDefinition } from '../op.js';

/** Cuts a tensor along `axis` into parts whose sizes a constant int64 vector states. */
export const split = {
  type: 'Split',
  domain: '',
  arity: [2, 2],
  attributes: { axis: 'int' },
  infer(call) {
    const x = call.input(0);
    const sizes = call.constantIntegers(1);
    const axis = call.axis(call.int('axis'), x.shape.length);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    if (x.shape[axis] !== total) call.fail(`the sizes add up to ${total}, not to axis ${axis}`);
    return sizes.map((size) => ({ type: x.type, shape: x.shape.with(axis, size) }));
  },
  gradient: (call) => [
    () => {
      const parts = call.flowing.map(
        // Nothing depends on this part: its gradient is zero.
        (gradient, index) => gradient ?? call.mul(call.result(index), call.graph.scalar(0)),
      );
      return call.op('Concat', parts, { axis: Number(call.attributes['axis']) });
    },
    null,
  ],
} satisfies OpDefinition;
