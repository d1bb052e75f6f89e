import type { OpDefinition } from '../op.js';

/** y = x - log(sum(exp(x))) along `axis`, without overflow. */
export const logSoftmax = {
  type: 'LogSoftmax',
  domain: '',
  arity: [1, 1],
  attributes: { axis: 'int' },
  infer(call) {
    const x = call.input(0, 'float32');
    call.axis(call.int('axis'), x.shape.length);
    return [{ type: 'float32', shape: x.shape }];
  },
} satisfies OpDefinition;
