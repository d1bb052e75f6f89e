// What gradient rules need of a graph that is being built.

import type { OpType } from './op-type.js';
import type { AttributeValue, Value } from './value.js';

export interface NodeOptions {
  /** Name of the node and stem of its results; numbered by operation when absent. */
  readonly name?: string;
  readonly attributes?: Readonly<Record<string, AttributeValue>>;
  /** Number of results taken; all that the operation has when absent. */
  readonly results?: number;
}

/** A node as it is built; its values may still be renamed by {@link GraphBuilder.output}. */
export interface DraftNode {
  readonly op: OpType;
  readonly name: string;
  readonly inputs: readonly (Value | null)[];
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly outputs: readonly Value[];
}

/** A result whose gradient goes by a rule of its own, past the nodes between it and some earlier values. */
export interface FusedGradient<Rule> {
  /** The inputs that the rule speaks of. */
  readonly inputs: readonly Value[];
  readonly rule: Rule;
}

/** @typeParam Rule a gradient rule; a parameter because rules are written in terms of this interface */
export interface GraphWriter<Rule = unknown> {
  /** Nodes so far, in an order in which they can run. */
  readonly nodes: readonly DraftNode[];
  op(op: OpType, inputs: readonly (Value | null)[], options?: NodeOptions): Value;
  ops(op: OpType, inputs: readonly (Value | null)[], options?: NodeOptions): readonly Value[];
  /** An int64 constant. */
  integers(values: readonly number[], shape?: readonly number[]): Value;
  /** A float32 scalar constant. */
  scalar(value: number): Value;
  /** A float32 constant of two numbers. */
  pair(first: number, second: number): Value;
  /** The rule that `fuseGradient` gave for a result, null for none. */
  fusedGradient(result: Value): FusedGradient<Rule> | null;
  /** The numbers of an int64 constant. @throws {GraphError} the value is none */
  integersOf(value: Value): readonly number[];
}
