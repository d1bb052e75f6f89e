import type { OpDefinition } from '../op.js';

/**
 * RMS norm over the last axis: y = x r scale, r = 1 / sqrt(mean(x^2) + epsilon), scale [D].
 * Results: y; r [..., 1], which the gradient needs:
 *   dx = r (g - x r mean(g x r)),  g = dy scale;  dscale = sum(dy x r)
 */
export const simplifiedLayerNormalization = {
  type: 'SimplifiedLayerNormalization',
  domain: '',
  arity: [2, 2],
  attributes: { axis: 'int', epsilon: 'float', stash_type: 'int' },
  infer(call) {
    const x = call.input(0, 'float32');
    call.input(1, 'float32');
    if (call.axis(call.int('axis'), x.shape.length) !== x.shape.length - 1) call.fail('only the last axis');
    call.expectShape(1, x.shape.slice(-1));
    return [
      { type: 'float32', shape: x.shape },
      { type: 'float32', shape: x.shape.with(-1, 1) },
    ];
  },
  gradient(call) {
    const unscaled = call.mul(call.input(0), call.result(1));
    return [
      () => {
        const g = call.mul(call.dy, call.input(1));
        const mean = call.op('ReduceMean', [call.mul(g, unscaled), call.graph.integers([-1])], {
          keepdims: 1,
        });
        return call.mul(call.op('Sub', [g, call.mul(unscaled, mean)]), call.result(1));
      },
      () => call.mul(call.dy, unscaled),
    ];
  },
} satisfies OpDefinition;
