// Keys and values of slots: for each layer one buffer of keys and one of values, [slots, kvHeads, capacity, headDim] in
// float32 or int8. The memory lies outside the JavaScript heap and is zero pages until a position is first written.

import { allocate, type TensorView } from '../../runtime/index.js';

export interface KvShape {
  readonly layers: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly slots: number;
  /** Positions of one slot. */
  readonly capacity: number;
}

export type KvBuffer = Float32Array | Int8Array;

export interface KvMemory<Buffer extends KvBuffer = KvBuffer> {
  readonly shape: KvShape;
  /** Keys of layer 0, values of layer 0, keys of layer 1, ... of all slots. */
  readonly buffers: readonly Buffer[];
  /** The same for `count` slots from `first` on, without a copy. */
  views(first: number, count: number): readonly TensorView[];
  /** Copies the first `length` positions of one slot over those of another. */
  copy(from: number, to: number, length: number): void;
  /** Swaps the first `length` positions of two slots. */
  exchange(one: number, other: number, length: number): void;
}

export const createFloatMemory = (shape: KvShape): KvMemory<Float32Array> =>
  createKvMemory(shape, 'float32', (size) => new Float32Array(size));

/** What an int8 is worth is nowhere in here; see `staging.ts`. */
export const createInt8Memory = (shape: KvShape): KvMemory<Int8Array> =>
  createKvMemory(shape, 'int8', (size) => new Int8Array(size));

function createKvMemory<Buffer extends KvBuffer>(
  shape: KvShape,
  type: 'float32' | 'int8',
  arrayOf: (size: number) => Buffer,
): KvMemory<Buffer> {
  const { layers, kvHeads, headDim, slots, capacity } = shape;
  const buffers = Array.from(
    { length: 2 * layers },
    () => allocate(type, [slots, kvHeads, capacity, headDim]).data as Buffer,
  );
  const headSize = capacity * headDim;
  const slotSize = kvHeads * headSize;
  const scratch = arrayOf(headSize);

  return {
    shape,
    buffers,
    views: (first, count) =>
      buffers.map((buffer) => ({
        type,
        shape: [count, kvHeads, capacity, headDim],
        data: buffer.subarray(first * slotSize, (first + count) * slotSize),
      })),
    copy(from, to, length) {
      for (const buffer of buffers)
        for (let head = 0; head < kvHeads; head++) {
          const source = from * slotSize + head * headSize;
          buffer.copyWithin(to * slotSize + head * headSize, source, source + length * headDim);
        }
    },
    exchange(one, other, length) {
      const size = length * headDim;
      for (const buffer of buffers)
        for (let head = 0; head < kvHeads; head++) {
          const a = one * slotSize + head * headSize;
          const b = other * slotSize + head * headSize;
          scratch.set(buffer.subarray(a, a + size));
          buffer.copyWithin(a, b, b + size);
          buffer.set(scratch.subarray(0, size), b);
        }
    },
  };
}
