// Metadata values as GGUF bytes.

import { InvalidInputError, UnsupportedError } from '../../errors.js';
import type { GgufEntry, GgufValue } from './metadata.js';
import { VALUE_TYPES, type ValueTypeName } from './types.js';

export function encodeUint(value: number, bytes: 4 | 8): Uint8Array {
  const view = new DataView(new ArrayBuffer(bytes));
  if (bytes === 8) view.setBigUint64(0, BigInt(value), true);
  else view.setUint32(0, value, true);
  return new Uint8Array(view.buffer);
}

export function encodeName(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'utf8');
  return Buffer.concat([encodeUint(bytes.length, 8), bytes]);
}

/** Type id and value; for an array also its element type and length. */
export function encodeEntry(key: string, { type, items, value }: GgufEntry): Uint8Array {
  const id = encodeUint(VALUE_TYPES[type], 4);
  if (type !== 'array') return Buffer.concat([id, encodeValue(key, type, value)]);
  if (!Array.isArray(value) || items === null)
    throw new InvalidInputError(`metadata "${key}": an array needs a list and the type of its elements`);
  if (items === 'array') throw new UnsupportedError(`metadata "${key}": nested arrays are not written`);
  const head = [id, encodeUint(VALUE_TYPES[items], 4), encodeUint(value.length, 8)];
  return Buffer.concat([...head, ...value.map((item) => encodeValue(key, items, item))]);
}

type Setter = (view: DataView, value: number & bigint) => void;

const INTEGERS: Readonly<
  Partial<Record<ValueTypeName, { bytes: number; min: bigint; max: bigint; set: Setter }>>
> = {
  uint8: { bytes: 1, min: 0n, max: 255n, set: (view, value) => view.setUint8(0, value) },
  int8: { bytes: 1, min: -128n, max: 127n, set: (view, value) => view.setInt8(0, value) },
  uint16: { bytes: 2, min: 0n, max: 65535n, set: (view, value) => view.setUint16(0, value, true) },
  int16: { bytes: 2, min: -32768n, max: 32767n, set: (view, value) => view.setInt16(0, value, true) },
  uint32: { bytes: 4, min: 0n, max: 2n ** 32n - 1n, set: (view, value) => view.setUint32(0, value, true) },
  int32: {
    bytes: 4,
    min: -(2n ** 31n),
    max: 2n ** 31n - 1n,
    set: (view, value) => view.setInt32(0, value, true),
  },
  uint64: { bytes: 8, min: 0n, max: 2n ** 64n - 1n, set: (view, value) => view.setBigUint64(0, value, true) },
  int64: {
    bytes: 8,
    min: -(2n ** 63n),
    max: 2n ** 63n - 1n,
    set: (view, value) => view.setBigInt64(0, value, true),
  },
};

function encodeValue(key: string, type: ValueTypeName, value: GgufValue): Uint8Array {
  if (type === 'string' && typeof value === 'string') return encodeName(value);
  if (type === 'bool' && typeof value === 'boolean') return Uint8Array.of(value ? 1 : 0);
  if ((type === 'float32' || type === 'float64') && typeof value === 'number')
    return encodeFloat(type, value);
  const integer = INTEGERS[type];
  if (!integer || (typeof value !== 'number' && typeof value !== 'bigint') || !isWhole(value))
    throw new InvalidInputError(`metadata "${key}": expected ${type}, found ${String(value)}`);
  if (BigInt(value) < integer.min || BigInt(value) > integer.max)
    throw new InvalidInputError(`metadata "${key}": ${value} does not fit ${type}`);
  const view = new DataView(new ArrayBuffer(integer.bytes));
  integer.set(view, (integer.bytes === 8 ? BigInt(value) : Number(value)) as number & bigint);
  return new Uint8Array(view.buffer);
}

const isWhole = (value: number | bigint): boolean => typeof value === 'bigint' || Number.isInteger(value);

function encodeFloat(type: 'float32' | 'float64', value: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(type === 'float32' ? 4 : 8));
  if (type === 'float32') view.setFloat32(0, value, true);
  else view.setFloat64(0, value, true);
  return new Uint8Array(view.buffer);
}
