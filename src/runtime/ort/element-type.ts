// Element types: the names of the house, ONNX's codes (TensorProto.DataType) and the typed array of each.

import { RuntimeError } from '../../errors.js';
import type { ElementType, TensorData, TensorView } from '../session.js';

interface Kind {
  readonly code: number;
  readonly array: new (buffer: ArrayBuffer) => TensorData;
  readonly bytes: number;
}

const KINDS: Readonly<Record<ElementType, Kind>> = {
  float32: { code: 1, array: Float32Array, bytes: 4 },
  uint8: { code: 2, array: Uint8Array, bytes: 1 },
  int8: { code: 3, array: Int8Array, bytes: 1 },
  int32: { code: 6, array: Int32Array, bytes: 4 },
  int64: { code: 7, array: BigInt64Array, bytes: 8 },
  bool: { code: 9, array: Uint8Array, bytes: 1 },
  float16: { code: 10, array: Uint16Array, bytes: 2 },
};

const BY_CODE = new Map(Object.entries(KINDS).map(([type, kind]) => [kind.code, type as ElementType]));

/** ONNX's code of an element type. */
export const elementCode = (type: ElementType): number => KINDS[type].code;

/**
 * The element type of an ONNX code.
 * @throws {RuntimeError} for a type that no graph of ours uses (double, string, ...)
 */
export function elementTypeOf(code: number, where: string): ElementType {
  const type = BY_CODE.get(code);
  if (type === undefined)
    throw new RuntimeError(`${where}: element type ${code} of ONNX is not one of ${Object.keys(KINDS)}`);
  return type;
}

export const elementCount = (shape: readonly number[]): number =>
  shape.reduce((count, size) => count * size, 1);

/** Bytes that a tensor takes. */
export const tensorBytes = (type: ElementType, shape: readonly number[]): number =>
  elementCount(shape) * KINDS[type].bytes;

export type BindingNames = Readonly<Record<'input' | 'output', readonly string[]>>;

/** @throws {RuntimeError} when the session has no such input or output, with those that it has */
export function checkName(names: BindingNames, side: 'input' | 'output', name: string): void {
  if (!names[side].includes(name))
    throw new RuntimeError(`the graph has no ${side} "${name}", only ${names[side].join(', ') || 'none'}`);
}

/**
 * Checks that a view's array has its element type and holds its shape.
 * @throws {RuntimeError} naming the value, what was expected and what came
 */
export function checkView(name: string, view: TensorView): void {
  const kind = KINDS[view.type];
  if (kind === undefined)
    throw new RuntimeError(`"${name}": element type "${view.type}" is not one of ${Object.keys(KINDS)}`);
  // By tag, not by instanceof: arrays may come from another realm, and a Buffer is a Uint8Array.
  const got = ArrayBuffer.isView(view.data) ? view.data[Symbol.toStringTag] : typeof view.data;
  if (got !== kind.array.name)
    throw new RuntimeError(`"${name}": ${view.type} wants a ${kind.array.name}, got ${got}`);
  if (!view.shape.every((size) => Number.isSafeInteger(size) && size >= 0))
    throw new RuntimeError(`"${name}": [${view.shape}] is not a shape`);
  const count = elementCount(view.shape);
  if (view.data.length < count)
    throw new RuntimeError(
      `"${name}": shape [${view.shape}] needs ${count} elements, the array holds ${view.data.length}`,
    );
}

/** A zeroed tensor of that type and shape with memory of its own. */
export function allocate(type: ElementType, shape: readonly number[]): TensorView {
  const buffer = new ArrayBuffer(tensorBytes(type, shape));
  return { type, shape, data: new KINDS[type].array(buffer) };
}
