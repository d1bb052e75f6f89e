import type { OpDefinition } from '../op.js';

/**
 * Attention of every token to every token that a mask lets through.
 * Inputs: query, key, value f32 [B, S, heads * H]; bias f32 [3 * heads * H] added to the three; mask int32 [B, S], 0 hides a key.
 */
export const multiHeadAttention = {
  type: 'MultiHeadAttention',
  domain: 'com.microsoft',
  arity: [5, 5],
  attributes: { num_heads: 'int' },
  infer(call) {
    const query = call.input(0, 'float32');
    if (query.shape.length !== 3) call.fail('query must have three axes');
    for (const index of [1, 2]) {
      call.input(index, 'float32');
      call.expectShape(index, query.shape);
    }
    const width = Number(query.shape[2]);
    if (width % call.int('num_heads') !== 0) call.fail('the width must be whole heads');
    call.input(3, 'float32');
    call.expectShape(3, [3 * width]);
    call.input(4, 'int32');
    call.expectShape(4, query.shape.slice(0, 2));
    return [{ type: 'float32', shape: query.shape }];
  },
} satisfies OpDefinition;
