// What a legal graph is, and the walk that checks it. Run after every build.

import { GraphError } from '../errors.js';
import { type Shape, sameShape, shapeText } from './dimension.js';
import { type Constant, type Graph, type GraphNode, isExternal } from './graph.js';
import { type AttributeKind, type Lookup, OpCall } from './op.js';
import { OPS } from './ops/index.js';
import type { AttributeValue, Value } from './value.js';

const BYTES: Readonly<Record<Value['type'], number>> = {
  float32: 4,
  float16: 2,
  int64: 8,
  int32: 4,
  uint8: 1,
  int8: 1,
  bool: 1,
};

type Rule = (graph: Graph) => Iterable<string>;

/** Each rule yields what is wrong; the first finding is reported. */
const RULES: Readonly<Record<string, Rule>> = {
  *'names are unique'(graph) {
    const seen = new Set<string>();
    const names = [
      ...graph.inputs.map((value) => value.name),
      ...graph.constants.keys(),
      ...graph.nodes.flatMap((node) => node.outputs),
    ];
    for (const name of names) {
      if (name === '' || seen.has(name)) yield `value "${name}" is defined twice or has no name`;
      seen.add(name);
    }
    const nodes = new Set<string>();
    for (const node of graph.nodes) {
      if (nodes.has(node.name)) yield `two nodes are called "${node.name}"`;
      nodes.add(node.name);
    }
  },

  *'constants have their bytes'(graph) {
    for (const { value, data } of graph.constants.values()) {
      const length = value.shape.reduce<number>((size, item) => size * Number(item), BYTES[value.type]);
      if (!(length === data.byteLength))
        yield `constant "${value.name}" ${value.type}${shapeText(value.shape)} has ${data.byteLength} bytes, not ${length}`;
    }
  },

  *'inputs are defined before they are used'(graph) {
    const defined = new Set([...graph.inputs.map((value) => value.name), ...graph.constants.keys()]);
    for (const node of graph.nodes) {
      for (const input of node.inputs)
        if (input !== null && !defined.has(input))
          yield `${node.op} "${node.name}": input "${input}" is not defined before it`;
      for (const output of node.outputs) defined.add(output);
    }
    for (const value of graph.outputs)
      if (!defined.has(value.name)) yield `output "${value.name}" is not defined`;
  },

  *'attributes are those of the operation'(graph) {
    for (const node of graph.nodes) {
      const { attributes, arity } = OPS[node.op];
      const where = `${node.op} "${node.name}"`;
      if (node.inputs.length < arity[0] || node.inputs.length > arity[1])
        yield `${where}: takes ${arity.join(' to ')} inputs, not ${node.inputs.length}`;
      for (const name of Object.keys(node.attributes))
        if (!(name in attributes)) yield `${where}: has no attribute "${name}"`;
      for (const [name, kind] of Object.entries(attributes))
        if (!attributeFits(node.attributes[name], kind))
          yield `${where}: attribute "${name}" must be ${kind}`;
    }
  },

  *'types are what the rules say'(graph) {
    const lookup = lookupIn(graph);
    for (const node of graph.nodes) {
      const results = inferred(graph, node, lookup);
      for (const [index, name] of node.outputs.entries()) {
        const stated = graph.values.get(name);
        const result = results[index];
        if (!stated || !result) yield `${node.op} "${node.name}": has no result ${index}`;
        else if (stated.type !== result.type || !sameShape(stated.shape, result.shape))
          yield `${node.op} "${node.name}": result "${name}" is ${result.type}${shapeText(result.shape)}, not ${stated.type}${shapeText(stated.shape)}`;
      }
    }
  },
};

/**
 * Checks names, order, attributes, types and shapes of a graph against the rules of its operations.
 * @throws {GraphError} naming the node, its inputs and their shapes
 */
export function verify(graph: Graph): void {
  for (const rule of Object.values(RULES))
    for (const finding of rule(graph)) throw new GraphError(`graph "${graph.name}": ${finding}`);
}

function inferred(graph: Graph, node: GraphNode, lookup: Lookup) {
  const inputs = node.inputs.map((name) => (name === null ? null : (graph.values.get(name) ?? null)));
  return OPS[node.op].infer(new OpCall(node.op, node.name, inputs, node.attributes, lookup));
}

function lookupIn(graph: Graph): Lookup {
  const shapes = new Map<string, Shape>();
  for (const node of graph.nodes) {
    const source = node.op === 'Shape' ? graph.values.get(node.inputs[0] ?? '') : undefined;
    if (source !== undefined) shapes.set(node.outputs[0] ?? '', source.shape);
  }
  return {
    integersOf: (name) => integersOf(graph.constants.get(name)),
    shapeBehind: (name) => shapes.get(name) ?? null,
  };
}

/** The numbers of an int64 constant inside the graph; null for anything else. */
export function integersOf(constant: Constant | undefined): readonly number[] | null {
  if (constant === undefined || constant.value.type !== 'int64' || isExternal(constant.data)) return null;
  const { buffer, byteOffset, byteLength } = constant.data;
  const view = new DataView(buffer, byteOffset, byteLength);
  return Array.from({ length: byteLength / 8 }, (_, index) => Number(view.getBigInt64(index * 8, true)));
}

function attributeFits(value: AttributeValue | undefined, kind: AttributeKind): boolean {
  if (value === undefined) return kind.endsWith('?');
  const plain = kind.replace('?', '');
  if (plain === 'int') return Number.isInteger(value);
  if (plain === 'float') return typeof value === 'number' && Number.isFinite(value);
  if (plain === 'string') return typeof value === 'string';
  return Array.isArray(value) && value.every(Number.isInteger);
}
