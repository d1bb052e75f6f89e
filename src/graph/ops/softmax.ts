import type { OpDefinition } from '../op.js';

/** y = exp(x) / sum(exp(x)) along `axis`, without overflow. dx = y (dy - sum(dy y)). */
export const softmax = {
  type: 'Softmax',
  domain: '',
  arity: [1, 1],
  attributes: { axis: 'int' },
  infer(call) {
    const x = call.input(0, 'float32');
    call.axis(call.int('axis'), x.shape.length);
    return [{ type: 'float32', shape: x.shape }];
  },
  gradient: (call) => [
    () => {
      const y = call.result();
      const total = call.sum(call.mul(call.dy, y), Number(call.attributes['axis']));
      return call.mul(y, call.op('Sub', [call.dy, total]));
    },
  ],
} satisfies OpDefinition;
