import type { OpDefinition } from '../op.js';

/**
 * Rotates pairs (i, i + H / 2) of every head by position: x f32 [B, S, heads * H], positions int64 [B, S],
 * cosines and sines f32 [P, H / 2].
 */
export const rotaryEmbedding = {
  type: 'RotaryEmbedding',
  domain: 'com.microsoft',
  arity: [4, 4],
  attributes: { num_heads: 'int' },
  infer(call) {
    const x = call.input(0, 'float32');
    if (x.shape.length !== 3) call.fail('input 0 must have three axes');
    call.input(1, 'int64');
    call.expectShape(1, x.shape.slice(0, 2));
    const headSize = Number(x.shape[2]) / call.int('num_heads');
    const positions = call.input(2, 'float32').shape[0] ?? 0;
    for (const index of [2, 3]) call.expectShape(index, [positions, headSize / 2]);
    return [{ type: 'float32', shape: x.shape }];
  },
  // The rotation back.
  gradient: (call) => [
    () => {
      const sines = call.op('Neg', [call.input(3)]);
      return call.op('RotaryEmbedding', [call.dy, call.input(1), call.input(2), sines], call.attributes);
    },
    null,
    null,
    null,
  ],
} satisfies OpDefinition;
