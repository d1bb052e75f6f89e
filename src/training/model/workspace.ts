// Memory for activations, by name, used again from run to run.

import type { TensorView } from '../../runtime/index.js';

export interface Tensors {
  tensor(name: string, shape: readonly number[]): TensorView;
}

export class Workspace implements Tensors {
  readonly #arrays = new Map<string, Float32Array>();
  readonly #views = new Map<string, TensorView>();

  /** A float32 tensor with undefined content. The same name and shape as the last time give the same view. */
  tensor(name: string, shape: readonly number[]): TensorView {
    const known = this.#views.get(name);
    if (known?.shape.length === shape.length && known.shape.every((size, axis) => size === shape[axis]))
      return known;
    const count = shape.reduce((product, size) => product * size, 1);
    let array = this.#arrays.get(name);
    if (array === undefined || array.length < count) {
      array = new Float32Array(count);
      this.#arrays.set(name, array);
    }
    const view: TensorView = { type: 'float32', shape, data: array.subarray(0, count) };
    this.#views.set(name, view);
    return view;
  }

  /** Gives the memory of all names back. */
  clear(): void {
    this.#arrays.clear();
    this.#views.clear();
  }
}

/** The numbers of a float32 view. */
export const floats = (view: TensorView): Float32Array => view.data as Float32Array;

/** Rows `start` to `start + count` of a view whose rows have `width` elements, as [count, width]. */
export function rowsOf(view: TensorView, start: number, count: number, width: number): TensorView {
  const data = floats(view).subarray(start * width, (start + count) * width);
  return { type: 'float32', shape: [count, width], data };
}

/** Copies rows [indices] of a matrix to one of as many rows. */
export function pickRows(from: TensorView, rows: Int32Array, to: TensorView): void {
  const width = from.shape[1]!;
  const [source, target] = [floats(from), floats(to)];
  for (let at = 0; at < rows.length; at++)
    target.set(source.subarray(rows[at]! * width, (rows[at]! + 1) * width), at * width);
}

/** Copies the rows of a matrix to rows [indices] of another, which is zero elsewhere. */
export function spreadRows(from: TensorView, rows: Int32Array, to: TensorView): void {
  const width = from.shape[1]!;
  const [source, target] = [floats(from), floats(to)];
  target.fill(0);
  for (let at = 0; at < rows.length; at++)
    target.set(source.subarray(at * width, (at + 1) * width), rows[at]! * width);
}
