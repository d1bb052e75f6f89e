import type { OpDefinition } from '../op.js';

/** Layer norm of x + skip + bias over the last axis: x and skip f32 [B, S, D]; scale, shift and bias [D]. */
export const skipLayerNormalization = {
  type: 'SkipLayerNormalization',
  domain: 'com.microsoft',
  arity: [5, 5],
  attributes: { epsilon: 'float' },
  infer(call) {
    const x = call.input(0, 'float32');
    call.input(1, 'float32');
    call.expectShape(1, x.shape);
    for (const index of [2, 3, 4]) {
      call.input(index, 'float32');
      call.expectShape(index, x.shape.slice(-1));
    }
    return [{ type: 'float32', shape: x.shape }];
  },
} satisfies OpDefinition;
