// What a gradient rule sees, and the few words it is written in.

import { GraphError } from '../errors.js';
import { type Dimension, shapeText } from './dimension.js';
import type { DraftNode, GraphWriter } from './graph-writer.js';
import type { OpType } from './op-type.js';
import type { AttributeValue, Value } from './value.js';

/** Adds the nodes of one input's gradient. Called only where that gradient is wanted. */
type Lazy = () => Value;

/**
 * One entry for each input: how its gradient is made, or null where it has none (indices, sizes).
 * A gradient may have more or larger axes than its input where that was broadcast: the walk sums them.
 */
export type GradientRule = (call: GradientCall) => readonly (Lazy | null)[];

/** One node that is being differentiated. */
export class GradientCall {
  #counter = 0;

  /** @param flowing gradient of each result, null where nothing depends on it */
  constructor(
    readonly graph: GraphWriter,
    private readonly node: DraftNode,
    readonly flowing: readonly (Value | null)[],
  ) {}

  get attributes(): Readonly<Record<string, AttributeValue>> {
    return this.node.attributes;
  }

  /** Number of inputs. */
  get count(): number {
    return this.node.inputs.length;
  }

  input(index: number): Value {
    return this.node.inputs[index] ?? this.fail(`input ${index} is missing`);
  }

  result(index = 0): Value {
    return this.node.outputs[index] ?? this.fail(`its gradient needs result ${index}`);
  }

  /** Gradient of the first result. */
  get dy(): Value {
    return this.flowing[0] ?? this.fail('nothing depends on its first result');
  }

  op(
    op: OpType,
    inputs: readonly (Value | null)[],
    attributes: Readonly<Record<string, AttributeValue>> = {},
  ): Value {
    return this.ops(op, inputs, attributes)[0]!;
  }

  ops(
    op: OpType,
    inputs: readonly (Value | null)[],
    attributes: Readonly<Record<string, AttributeValue>> = {},
  ): readonly Value[] {
    return this.graph.ops(op, inputs, { name: `${this.node.name}.grad.${this.#counter++}`, attributes });
  }

  mul(a: Value, b: Value): Value {
    return this.op('Mul', [a, b]);
  }

  /** Sum over one axis, which stays as 1. */
  sum(x: Value, axis: number): Value {
    return this.op('ReduceSum', [x, this.graph.integers([axis])], { keepdims: 1 });
  }

  /** `x` with the shape of `like`, which holds as many elements. */
  reshape(x: Value, like: Value): Value {
    return this.op('Reshape', [x, this.graph.integers(this.target(like.shape))]);
  }

  /** Sizes for Reshape: at most one may be a symbol. */
  target(shape: readonly Dimension[]): readonly number[] {
    const open = shape.filter((size) => typeof size === 'string').length;
    if (open > 1) this.fail(`${shapeText(shape)} has ${open} open axes, one can be restored`);
    return shape.map((size) => (typeof size === 'number' ? size : -1));
  }

  fail(reason: string): never {
    throw new GraphError(`gradient of ${this.node.op} "${this.node.name}": ${reason}`);
  }
}
