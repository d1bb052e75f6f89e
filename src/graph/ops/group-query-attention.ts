import type { OpDefinition } from '../op.js';

/**
 * Causal attention of new tokens over a key/value cache that it extends, optionally with rotary positions.
 * Inputs: query f32 [B, S, heads * H] with key and value [B, S, kvHeads * H], or all three packed in query;
 * past key and value f32 [B, kvHeads, T, H]; seqlens_k int32 [B] (tokens of each row after this step, minus 1);
 * total_sequence_length int32 [1] (the largest of them, plus 1); cosines and sines [P, H / 2] when `do_rotary`.
 * With `kv_cache_bit_width` 8 the cache is int8, a step of each channel being an element of inputs 12 (keys) and 13 (values),
 * f32 [kvHeads * H]; what lies beyond 127 steps is cut. Input 11 f32 [heads]: a score of each head that takes part in the
 * softmax and stands for nothing; very low ones change no result, but keep the kernel from walking in tiles.
 * Results: attention [B, S, heads * H]; present key and value, which may be the memory of the past ones.
 */
export const groupQueryAttention = {
  type: 'GroupQueryAttention',
  domain: 'com.microsoft',
  arity: [7, 14],
  attributes: {
    num_heads: 'int',
    kv_num_heads: 'int',
    do_rotary: 'int?',
    kv_cache_bit_width: 'int?',
    k_quant_type: 'string?',
    v_quant_type: 'string?',
  },
  infer(call) {
    const query = call.input(0, 'float32');
    const [heads, kvHeads] = [call.int('num_heads'), call.int('kv_num_heads')];
    const packed = call.optional(1, 'float32') === null;
    if (query.shape.length !== 3) call.fail('query must have three axes');
    const [batch, tokens, width] = query.shape;
    const headSize = Number(width) / (packed ? heads + 2 * kvHeads : heads);
    if (!Number.isInteger(headSize) || headSize % 8 !== 0)
      call.fail(`head size ${headSize} must be a multiple of 8`);
    if (heads % kvHeads !== 0) call.fail('num_heads must be a multiple of kv_num_heads');
    if (!packed)
      for (const index of [1, 2]) {
        call.input(index, 'float32');
        call.expectShape(index, [batch!, tokens!, kvHeads * headSize]);
      }
    const cacheType = call.int('kv_cache_bit_width', 0) === 8 ? 'int8' : 'float32';
    const cache = call.input(3, cacheType).shape;
    if (cacheType === 'int8')
      for (const index of [12, 13]) {
        call.input(index, 'float32');
        call.expectShape(index, [kvHeads * headSize]);
      }
    if (call.optional(11, 'float32') !== null) call.expectShape(11, [heads]);
    for (const index of [3, 4]) call.expectShape(index, [batch!, kvHeads, cache[2] ?? 0, headSize]);
    call.input(5, 'int32');
    call.expectShape(5, [batch!]);
    call.input(6, 'int32');
    call.expectShape(6, [1]);
    if (call.int('do_rotary', 0) === 1) {
      if (headSize % 16 !== 0) call.fail(`head size ${headSize} must be a multiple of 16 to be rotated here`);
      const positions = call.input(7, 'float32').shape[0] ?? 0;
      for (const index of [7, 8]) call.expectShape(index, [positions, headSize / 2]);
    }
    const present = { type: cacheType, shape: cache } as const;
    return [{ type: 'float32', shape: [batch!, tokens!, heads * headSize] }, present, present];
  },
} satisfies OpDefinition;
