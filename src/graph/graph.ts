// A graph as plain data. Values are named and typed; nodes stand in an order in which they can run.

import type { OpType } from './op-type.js';
import type { AttributeValue, Value } from './value.js';

/** Bytes of a constant in a file beside the graph. */
export interface ExternalData {
  /** File name relative to the graph's folder. */
  readonly file: string;
  readonly byteOffset: number;
  readonly byteLength: number;
}

export interface Constant {
  readonly value: Value;
  /** Little-endian, row major. */
  readonly data: Uint8Array | ExternalData;
}

export interface GraphNode {
  readonly op: OpType;
  /** Unique; says what the node is for (`layers.0.qkv`), and appears in every message about it. */
  readonly name: string;
  /** Names of values; null where an optional input is left out. */
  readonly inputs: readonly (string | null)[];
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly outputs: readonly string[];
}

export interface Graph {
  readonly name: string;
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly constants: ReadonlyMap<string, Constant>;
  readonly nodes: readonly GraphNode[];
  /** Every value of the graph by name: inputs, constants, results. */
  readonly values: ReadonlyMap<string, Value>;
}

export function isExternal(data: Constant['data']): data is ExternalData {
  return !(data instanceof Uint8Array);
}
