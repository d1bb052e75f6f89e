import type { OpDefinition } from '../op.js';

/** RMS norm over the last axis: y = x / sqrt(mean(x^2) + epsilon) * scale, scale [D]. */
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
    return [{ type: 'float32', shape: x.shape }];
  },
} satisfies OpDefinition;
