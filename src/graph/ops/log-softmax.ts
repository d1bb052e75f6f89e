import type { OpDefinition } from '../op.js';

/** y = x - log(sum(exp(x))) along `axis`, without overflow. dx = dy - exp(y) sum(dy). */
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
  gradient: (call) => [
    () => {
      const total = call.sum(call.dy, Number(call.attributes['axis']));
      return call.op('Sub', [call.dy, call.mul(call.op('Exp', [call.result()]), total)]);
    },
  ],
} satisfies OpDefinition;
