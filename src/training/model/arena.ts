// Memory for what is kept of one batch until its backward run: filled in order, and free again as a whole. Batches differ in
// what they keep; memory by name would come to hold the most of each.

import type { TensorView } from '../../runtime/index.js';
import type { Tensors } from './workspace.js';

/** In numbers: 64 MiB. */
const SEGMENT = 2 ** 24;
/** Tensors begin at a line of the cache. */
const ALIGNMENT = 16;

export class Arena implements Tensors {
  readonly #segments: Float32Array[] = [];
  #segment = 0;
  #used = 0;
  #views = new Map<string, TensorView>();
  #before = new Map<string, TensorView>();

  /** Another batch: what was kept of the last one is free. */
  begin(): void {
    this.#before = this.#views;
    this.#views = new Map();
    this.#segment = 0;
    this.#used = 0;
  }

  /** A float32 tensor with undefined content, the same for one name until the next `begin`. */
  tensor(name: string, shape: readonly number[]): TensorView {
    const known = this.#views.get(name);
    if (known !== undefined) return known;
    const data = this.#take(shape.reduce((product, size) => product * size, 1));
    const before = this.#before.get(name);
    // Views that are the same objects need not be bound again.
    const view =
      before !== undefined && isAt(before, data, shape)
        ? before
        : ({ type: 'float32', shape, data } as const);
    this.#views.set(name, view);
    return view;
  }

  /** Gives the memory back. */
  clear(): void {
    this.begin();
    this.#before.clear();
    this.#segments.length = 0;
  }

  #take(count: number): Float32Array {
    const size = Math.ceil(count / ALIGNMENT) * ALIGNMENT;
    for (;;) {
      const segment = this.#segments[this.#segment];
      if (segment === undefined || (this.#used === 0 && segment.length < size))
        this.#segments[this.#segment] = new Float32Array(Math.max(SEGMENT, size));
      else if (segment.length - this.#used < size) {
        this.#segment++;
        this.#used = 0;
      } else {
        this.#used += size;
        return segment.subarray(this.#used - size, this.#used - size + count);
      }
    }
  }
}

function isAt(view: TensorView, data: Float32Array, shape: readonly number[]): boolean {
  const old = view.data as Float32Array;
  return (
    old.buffer === data.buffer &&
    old.byteOffset === data.byteOffset &&
    view.shape.length === shape.length &&
    view.shape.every((size, axis) => size === shape[axis])
  );
}
