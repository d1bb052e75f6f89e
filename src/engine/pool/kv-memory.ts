// Keys and values of all slots: for each layer one buffer of keys and one of values, f32 [slots, kvHeads, capacity,
// headDim]. The memory lies outside the JavaScript heap and is zero pages until a position is first written.

import { allocate, type TensorView } from '../../runtime/index.js';

export interface KvShape {
  readonly layers: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly slots: number;
  /** Positions of one slot. */
  readonly capacity: number;
}

export interface KvMemory {
  readonly shape: KvShape;
  /** Keys of layer 0, values of layer 0, keys of layer 1, ... for `count` slots from `first` on, without a copy. */
  views(first: number, count: number): readonly TensorView[];
  /** Copies the first `length` positions of one slot over those of another. */
  copy(from: number, to: number, length: number): void;
  /** Swaps the first `length` positions of two slots. */
  exchange(one: number, other: number, length: number): void;
}

export function createKvMemory(shape: KvShape): KvMemory {
  const { layers, kvHeads, headDim, slots, capacity } = shape;
  const buffers = Array.from(
    { length: 2 * layers },
    () => allocate('float32', [slots, kvHeads, capacity, headDim]).data as Float32Array,
  );
  const headSize = capacity * headDim;
  const slotSize = kvHeads * headSize;
  const scratch = new Float32Array(headSize);

  return {
    shape,
    views: (first, count) =>
      buffers.map((buffer) => ({
        type: 'float32',
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
