// Builds a graph node by node. Types are inferred as nodes are added, so a mistake is reported where it is made.

import { GraphError } from '../errors.js';
import type { ElementType } from '../runtime/index.js';
import type { Shape } from './dimension.js';
import type { GradientRule } from './gradient-call.js';
import type { Constant, ExternalData, Graph, GraphNode } from './graph.js';
import type { DraftNode, FusedGradient, GraphWriter, NodeOptions } from './graph-writer.js';
import { type Lookup, OpCall } from './op.js';
import type { OpType } from './op-type.js';
import { OPS } from './ops/index.js';
import type { Value } from './value.js';
import { integersOf, verify } from './verify.js';

export type ConstantData = Float32Array | BigInt64Array | Int32Array | Uint8Array;

const ELEMENT_OF = new Map<unknown, ElementType>([
  [Float32Array, 'float32'],
  [BigInt64Array, 'int64'],
  [Int32Array, 'int32'],
  [Uint8Array, 'uint8'],
]);

export class GraphBuilder implements GraphWriter<GradientRule> {
  readonly #name: string;
  readonly #inputs: Value[] = [];
  readonly #outputs = new Map<string, Value>();
  readonly #constants = new Map<string, Constant>();
  readonly #nodes: DraftNode[] = [];
  readonly #taken = new Set<string>();
  /** By name of a result of Shape: the shape that it holds. */
  readonly #shapes = new Map<string, Shape>();
  readonly #fused = new Map<Value, FusedGradient<GradientRule>>();
  readonly #lookup: Lookup = {
    integersOf: (name) => integersOf(this.#constants.get(name)),
    shapeBehind: (name) => this.#shapes.get(name) ?? null,
  };
  #counter = 0;

  constructor(name: string) {
    this.#name = name;
  }

  /** Nodes so far, in an order in which they can run. */
  get nodes(): readonly DraftNode[] {
    return this.#nodes;
  }

  /** The numbers of an int64 constant. @throws {GraphError} the value is none */
  integersOf(value: Value): readonly number[] {
    const numbers = this.#lookup.integersOf(value.name);
    if (numbers === null) throw new GraphError(`${value.name} is not an int64 constant`);
    return numbers;
  }

  input(name: string, type: ElementType, shape: Shape): Value {
    const value = { name: this.#take(name), type, shape };
    this.#inputs.push(value);
    return value;
  }

  /** A small constant inside the graph file. Without a shape it is a vector. */
  constant(name: string, data: ConstantData, shape: Shape = [data.length]): Value {
    const type = ELEMENT_OF.get(data.constructor);
    if (type === undefined) throw new GraphError(`constant "${name}": unknown kind of array`);
    const value = { name: this.#take(name), type, shape };
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#constants.set(name, { value, data: bytes });
    return value;
  }

  /** An int64 constant, named by its content and made once. */
  integers(values: readonly number[], shape: readonly number[] = [values.length]): Value {
    const name = `int.${shape.length}.${values.join('_')}`;
    const made = this.#constants.get(name);
    return made ? made.value : this.constant(name, BigInt64Array.from(values, BigInt), shape);
  }

  /** A float32 scalar, named by its content and made once. */
  scalar(value: number): Value {
    const name = `float.${value}`;
    const made = this.#constants.get(name);
    return made ? made.value : this.constant(name, Float32Array.of(value), []);
  }

  /** A float32 vector of two, named by its content and made once. */
  pair(first: number, second: number): Value {
    const name = `pair.${first}_${second}`;
    const made = this.#constants.get(name);
    return made ? made.value : this.constant(name, Float32Array.of(first, second));
  }

  /** A constant whose bytes lie in a file beside the graph. */
  external(name: string, type: ElementType, shape: Shape, data: ExternalData): Value {
    const made = this.#constants.get(name);
    if (made) return made.value;
    const value = { name: this.#take(name), type, shape };
    this.#constants.set(name, { value, data });
    return value;
  }

  /** Adds a node and returns its first result. */
  op(op: OpType, inputs: readonly (Value | null)[], options: NodeOptions = {}): Value {
    return this.ops(op, inputs, options)[0] as Value;
  }

  /**
   * Adds a node and returns its results.
   * @throws {GraphError} the inputs break the operation's rule
   */
  ops(op: OpType, inputs: readonly (Value | null)[], options: NodeOptions = {}): readonly Value[] {
    const name = this.#take(options.name ?? `${op}.${this.#counter++}`, true);
    const attributes = options.attributes ?? {};
    const results = OPS[op].infer(new OpCall(op, name, inputs, attributes, this.#lookup));
    const outputs = results.slice(0, options.results).map(({ type, shape }, index) => ({
      name: this.#take(index === 0 ? name : `${name}.${index}`),
      type,
      shape,
    }));
    this.#nodes.push({ op, name, inputs, attributes, outputs });
    if (op === 'Shape') this.#shapes.set(outputs[0]!.name, inputs[0]!.shape);
    return outputs;
  }

  /**
   * Gives a result a gradient rule of its own with respect to earlier values, instead of that of its node and of those
   * between: for what is cheaper to differentiate as a whole. No other way may lead from these values to the result.
   */
  fuseGradient(result: Value, inputs: readonly Value[], rule: GradientRule): void {
    this.#fused.set(result, { inputs, rule });
  }

  fusedGradient(result: Value): FusedGradient<GradientRule> | null {
    return this.#fused.get(result) ?? null;
  }

  /** Makes a result an output of the graph, under this name. */
  output(name: string, value: Value): void {
    if (!this.#nodes.some((node) => node.outputs.includes(value)))
      throw new GraphError(`output "${name}": ${value.name} is not the result of a node`);
    if (this.#outputs.has(name) || (this.#taken.has(name) && name !== value.name))
      throw new GraphError(`output "${name}": the name is taken`);
    if ([...this.#outputs.values()].includes(value))
      throw new GraphError(`output "${name}": ${value.name} is an output already`);
    this.#outputs.set(name, value);
  }

  /** @throws {GraphError} what {@link verify} finds */
  build(): Graph {
    const renamed = new Map([...this.#outputs].map(([name, value]) => [value, { ...value, name }]));
    const final = (value: Value): Value => renamed.get(value) ?? value;
    const nodes: GraphNode[] = this.#nodes.map((node) => ({
      ...node,
      inputs: node.inputs.map((value) => (value === null ? null : final(value).name)),
      outputs: node.outputs.map((value) => final(value).name),
    }));
    const values = [
      ...this.#inputs,
      ...[...this.#constants.values()].map((constant) => constant.value),
      ...this.#nodes.flatMap((node) => node.outputs.map(final)),
    ];
    const graph: Graph = {
      name: this.#name,
      inputs: this.#inputs,
      outputs: [...this.#outputs.values()].map(final),
      constants: this.#constants,
      nodes,
      values: new Map(values.map((value) => [value.name, value])),
    };
    verify(graph);
    return graph;
  }

  #take(name: string, node = false): string {
    const key = node ? `node ${name}` : name;
    if (this.#taken.has(key)) throw new GraphError(`"${name}": the name is taken`);
    this.#taken.add(key);
    return name;
  }
}
