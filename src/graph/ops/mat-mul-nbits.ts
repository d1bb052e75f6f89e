import type { OpDefinition } from '../op.js';

/**
 * y = x W^T (+ bias), W [N, K] in blocks of `block_size` along K.
 * Inputs: x f32 [..., K], W uint8 [N, ceil(K / block_size), block_size * bits / 8], scales f32 [N, ceil(K / block_size)],
 * zero points uint8 [N, ceil(ceil(K / block_size) * bits / 8)] (none: the middle of the range), group index (unused), bias f32 [N].
 * `accuracy_level` 4 lets the activations be rounded to int8 per block.
 */
export const matMulNBits = {
  type: 'MatMulNBits',
  domain: 'com.microsoft',
  arity: [3, 6],
  attributes: { K: 'int', N: 'int', bits: 'int', block_size: 'int', accuracy_level: 'int?' },
  infer(call) {
    const x = call.input(0, 'float32');
    const [inner, columns, block] = [call.int('K'), call.int('N'), call.int('block_size')];
    if (x.shape.at(-1) !== inner) call.fail(`the last axis of input 0 must be K = ${inner}`);
    const blocks = Math.ceil(inner / block);
    call.input(1, 'uint8');
    call.expectShape(1, [columns, blocks, (block * call.int('bits')) / 8]);
    call.input(2, 'float32');
    call.expectShape(2, [columns, blocks]);
    if (call.optional(3, 'uint8') !== null)
      call.expectShape(3, [columns, Math.ceil((blocks * call.int('bits')) / 8)]);
    if (call.optional(5, 'float32') !== null) call.expectShape(5, [columns]);
    return [{ type: 'float32', shape: [...x.shape.slice(0, -1), columns] }];
  },
} satisfies OpDefinition;
