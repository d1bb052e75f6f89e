import type { OpDefinition } from '../op.js';

/**
 * Rows of an 8-bit table, dequantised: table uint8 [V, D] in blocks of `block_size` along D around 128, int64 ids of any
 * shape, scales f32 [V, D / block_size].
 */
export const gatherBlockQuantized = {
  type: 'GatherBlockQuantized',
  domain: 'com.microsoft',
  arity: [3, 3],
  attributes: { gather_axis: 'int', quantize_axis: 'int', block_size: 'int', bits: 'int' },
  infer(call) {
    const [rows, width] = call.input(0, 'uint8').shape;
    const ids = call.input(1, 'int64');
    call.input(2, 'float32');
    if (typeof width !== 'number' || width % call.int('block_size') !== 0)
      return call.fail('the second axis of input 0 must be whole blocks');
    call.expectShape(2, [rows!, width / call.int('block_size')]);
    if (call.int('gather_axis') !== 0 || call.int('quantize_axis') !== 1 || call.int('bits') !== 8)
      call.fail('only 8-bit rows along the second axis');
    return [{ type: 'float32', shape: [...ids.shape, width] }];
  },
} satisfies OpDefinition;
