// Reverse-mode differentiation: one walk over the nodes of a graph, backwards, by the rules of its operations.

import { GraphError } from '../errors.js';
import { sameShape, shapeText } from './dimension.js';
import { GradientCall, type GradientRule } from './gradient-call.js';
import type { DraftNode, GraphWriter } from './graph-writer.js';
import { OPS } from './ops/index.js';
import type { Value } from './value.js';

/**
 * Adds the nodes that compute d L / d target, where L is any number of which d L / d seed is known:
 *   d L / d target = sum over seeds of (d seed / d target)^T (d L / d seed)
 * Nodes that no target depends on, or that no seed sees, are skipped.
 * @param seeds  results and their gradients, of equal shapes
 * @returns gradients by target; a target that no seed depends on is absent
 * @throws {GraphError} an operation on the way has no rule: names it and the way from it to the seed
 */
export function gradients(
  graph: GraphWriter<GradientRule>,
  seeds: ReadonlyMap<Value, Value>,
  targets: readonly Value[],
): Map<Value, Value> {
  const walk = new ReverseWalk(graph, targets);
  for (const [value, gradient] of seeds) {
    if (!sameShape(value.shape, gradient.shape))
      throw new GraphError(
        `seed of ${value.name} is ${shapeText(gradient.shape)}, not ${shapeText(value.shape)}`,
      );
    walk.add(value, gradient, null);
  }
  for (const node of [...graph.nodes].reverse()) walk.visit(node);
  const found = targets.map((target) => [target, walk.total(target)] as const);
  return new Map(found.filter((entry): entry is [Value, Value] => entry[1] !== null));
}

class ReverseWalk {
  /** Values that a target flows into, targets included. */
  readonly #wanted: Set<Value>;
  readonly #parts = new Map<Value, Value[]>();
  /** The node that gave a value its first gradient; null for a seed. For messages. */
  readonly #givers = new Map<Value, DraftNode | null>();

  constructor(
    private readonly graph: GraphWriter<GradientRule>,
    targets: readonly Value[],
  ) {
    this.#wanted = new Set(targets);
    for (const node of graph.nodes)
      if (node.inputs.some((input) => input !== null && this.#wanted.has(input)))
        for (const output of node.outputs) if (output.type === 'float32') this.#wanted.add(output);
  }

  add(value: Value, gradient: Value, giver: DraftNode | null): void {
    const parts = this.#parts.get(value);
    if (parts) parts.push(gradient);
    else {
      this.#parts.set(value, [gradient]);
      this.#givers.set(value, giver);
    }
  }

  /** The sum of all that was added for a value, null for none. */
  total(value: Value): Value | null {
    const parts = this.#parts.get(value);
    if (parts === undefined) return null;
    const sum = parts.reduce((left, right) => this.graph.op('Add', [left, right]));
    this.#parts.set(value, [sum]);
    return sum;
  }

  visit(built: DraftNode): void {
    const fused = built.outputs.length === 1 ? this.graph.fusedGradient(built.outputs[0]!) : null;
    const node = fused === null ? built : { ...built, inputs: fused.inputs };
    const wanted = node.inputs.map((input) => input !== null && this.#wanted.has(input));
    if (!wanted.includes(true)) return;
    const flowing = node.outputs.map((output) => this.total(output));
    if (flowing.every((gradient) => gradient === null)) return;
    const rule = fused?.rule ?? OPS[node.op].gradient;
    if (rule === undefined)
      throw new GraphError(`${node.op} "${node.name}" has no gradient rule; way: ${this.#way(built)}`);
    const inputs = rule(new GradientCall(this.graph, node, flowing));
    for (const [index, input] of node.inputs.entries()) {
      if (input === null || !wanted[index]) continue;
      const make = inputs[index] ?? null;
      if (make === null)
        throw new GraphError(
          `${node.op} "${node.name}": input ${index} (${input.name}) has no gradient; way: ${this.#way(built)}`,
        );
      this.add(input, sumTo(this.graph, make(), input), built);
    }
  }

  /** Nodes from this one on to the seed. */
  #way(node: DraftNode): string {
    const names: string[] = [];
    for (let at: DraftNode | null | undefined = node; at; ) {
      names.push(at.name);
      const output: Value | undefined = at.outputs.find((value) => this.#givers.has(value));
      at = output && this.#givers.get(output);
    }
    return names.join(' -> ');
  }
}

/** Sums the axes along which `input` was broadcast to the shape of its gradient. */
function sumTo(graph: GraphWriter<GradientRule>, gradient: Value, input: Value): Value {
  if (sameShape(gradient.shape, input.shape)) return gradient;
  const extra = gradient.shape.length - input.shape.length;
  const axes = gradient.shape.flatMap((size, axis) => {
    const own = axis < extra ? null : input.shape[axis - extra];
    return own === null || (own === 1 && size !== 1) ? [axis] : [];
  });
  let sum = gradient;
  if (axes.length > 0) {
    const kept = axes.every((axis) => axis >= extra);
    sum = graph.op('ReduceSum', [gradient, graph.integers(axes)], { attributes: { keepdims: kept ? 1 : 0 } });
  }
  if (sameShape(sum.shape, input.shape)) return sum;
  const open = input.shape.filter((size) => typeof size === 'string').length;
  if (open > 1)
    throw new GraphError(
      `gradient of ${input.name} is ${shapeText(gradient.shape)}, cannot be summed to ${shapeText(input.shape)}`,
    );
  const target = input.shape.map((size) => (typeof size === 'number' ? size : -1));
  return graph.op('Reshape', [sum, graph.integers(target)]);
}
