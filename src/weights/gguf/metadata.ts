// The key-value section of a GGUF file.

import type { Cursor } from './cursor.js';
import {
  MAX_ARRAY_DEPTH,
  MAX_ARRAY_ELEMENTS,
  MAX_NAME_BYTES,
  MAX_STRING_BYTES,
  VALUE_MIN_BYTES,
  VALUE_TYPES,
  type ValueTypeName,
} from './types.js';

/** 64-bit integers are numbers where exact, else bigint. */
export type GgufValue = number | bigint | boolean | string | GgufValue[];

/** A value with its type in the file, so that metadata can be written again as it was. */
export interface GgufEntry {
  readonly type: ValueTypeName;
  /** Element type of an array. */
  readonly items: ValueTypeName | null;
  readonly value: GgufValue;
}

/** Bytes of the shortest entry: key length, one-letter key, value type, one-byte value. */
const MIN_ENTRY_BYTES = 14;

const NAMES: ReadonlyMap<number, ValueTypeName> = new Map(
  (Object.entries(VALUE_TYPES) as [ValueTypeName, number][]).map(([name, id]) => [id, name]),
);

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lenientUtf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** @throws {FileFormatError} counts beyond the file, unknown types, a key twice, limits passed */
export function readMetadata(cursor: Cursor, count: bigint): Map<string, GgufEntry> {
  if (count * BigInt(MIN_ENTRY_BYTES) > BigInt(cursor.remaining))
    throw cursor.fault(`${count} metadata entries cannot lie in the ${cursor.remaining} bytes that are left`);
  const metadata = new Map<string, GgufEntry>();
  const budget = { elements: MAX_ARRAY_ELEMENTS };
  for (let i = 0; i < Number(count); i += 1) {
    const start = cursor.offset;
    const key = readName(cursor, 'metadata key');
    if (metadata.has(key)) throw cursor.fault(`metadata key "${key}" stands twice`, start);
    const what = `metadata "${key}"`;
    metadata.set(key, readEntry(cursor, what, budget));
  }
  return metadata;
}

function readEntry(cursor: Cursor, what: string, budget: { elements: number }): GgufEntry {
  const type = readValueType(cursor, what);
  if (type !== 'array') return { type, items: null, value: readValue(cursor, type, what, budget, 0) };
  const { items, values } = readArray(cursor, what, budget, 0);
  return { type, items, value: values };
}

/** A key or tensor name: at most 65,535 bytes of valid UTF-8. */
export function readName(cursor: Cursor, what: string): string {
  const start = cursor.offset;
  const bytes = readStringBytes(cursor, MAX_NAME_BYTES, what);
  try {
    return strictUtf8.decode(bytes);
  } catch {
    throw cursor.fault(`${what} is not UTF-8`, start);
  }
}

function readStringBytes(cursor: Cursor, limit: number, what: string): Uint8Array {
  const start = cursor.offset;
  const length = cursor.uint64(what);
  if (length > BigInt(cursor.remaining))
    throw cursor.fault(`${what} claims ${length} bytes, ${cursor.remaining} are left`, start);
  if (length > BigInt(limit)) throw cursor.fault(`${what} has ${length} bytes, the limit is ${limit}`, start);
  return cursor.bytes(Number(length), what);
}

function readValueType(cursor: Cursor, what: string): ValueTypeName {
  const start = cursor.offset;
  const id = cursor.uint32(what);
  const name = NAMES.get(id);
  if (!name) throw cursor.fault(`${what} has unknown value type ${id}`, start);
  return name;
}

function readValue(
  cursor: Cursor,
  type: ValueTypeName,
  what: string,
  budget: { elements: number },
  depth: number,
): GgufValue {
  switch (type) {
    case 'bool':
      return readBool(cursor, what);
    case 'string':
      return lenientUtf8.decode(readStringBytes(cursor, MAX_STRING_BYTES, what));
    case 'uint64':
    case 'int64':
      return exactNumber(cursor[type](what));
    case 'array':
      return readArray(cursor, what, budget, depth).values;
    default:
      return cursor[type](what);
  }
}

function readBool(cursor: Cursor, what: string): boolean {
  const start = cursor.offset;
  const byte = cursor.uint8(what);
  if (byte > 1) throw cursor.fault(`${what}: a truth value must be 0 or 1, found ${byte}`, start);
  return byte === 1;
}

function exactNumber(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function readArray(
  cursor: Cursor,
  what: string,
  budget: { elements: number },
  depth: number,
): { items: ValueTypeName; values: GgufValue[] } {
  const start = cursor.offset;
  if (depth >= MAX_ARRAY_DEPTH)
    throw cursor.fault(`${what}: arrays nested deeper than ${MAX_ARRAY_DEPTH}`, start);
  const items = readValueType(cursor, `${what} (array)`);
  const length = cursor.uint64(`${what} (array)`);
  if (length * BigInt(VALUE_MIN_BYTES[items]) > BigInt(cursor.remaining))
    throw cursor.fault(`${what} claims ${length} elements, only ${cursor.remaining} bytes are left`, start);
  budget.elements -= Number(length);
  if (budget.elements < 0)
    throw cursor.fault(`${what}: metadata has more than ${MAX_ARRAY_ELEMENTS} array elements`, start);
  const values: GgufValue[] = [];
  for (let i = 0; i < Number(length); i += 1) values.push(readValue(cursor, items, what, budget, depth + 1));
  return { items, values };
}
