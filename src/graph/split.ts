// Cuts a graph that computes results and gradients into one that runs before the gradients of the results are known and
// one that runs after.

import { GraphError } from '../errors.js';
import type { Graph, GraphNode } from './graph.js';
import type { Value } from './value.js';
import { verify } from './verify.js';

export interface SplitOptions {
  /** Inputs that are known only after the results: gradients of them, sums so far. */
  readonly seeds: readonly Value[];
  /** Values that the first graph gives to the second. What else the second needs, it computes again. */
  readonly kept: readonly Value[];
}

export interface SplitGraphs {
  /** The outputs that depend on no seed. */
  readonly score: Graph;
  /** The same, and the kept values. */
  readonly forward: Graph;
  /** The other outputs, from the kept values, the seeds, and those inputs that are still needed. */
  readonly backward: Graph;
}

/**
 * Splits a joint graph. The same inputs, constants and names are used on both sides.
 * @throws {GraphError} a kept value depends on a seed, or is none of the graph's
 */
export function splitAtSeeds(joint: Graph, { seeds, kept }: SplitOptions): SplitGraphs {
  const late = dependentOn(joint, seeds);
  for (const value of kept) {
    if (!joint.values.has(value.name)) throw new GraphError(`kept value "${value.name}" is not in the graph`);
    if (late.has(value.name)) throw new GraphError(`kept value "${value.name}" depends on a seed`);
  }
  const early = joint.outputs.filter((value) => !late.has(value.name));
  const gradients = joint.outputs.filter((value) => late.has(value.name));
  const given = new Set(kept.map((value) => value.name));
  const results = kept.filter((value) => !early.some((output) => output.name === value.name));
  return {
    score: subgraph(joint, 'score', early, new Set()),
    forward: subgraph(joint, 'forward', [...early, ...results], new Set()),
    backward: subgraph(joint, 'backward', gradients, given),
  };
}

function dependentOn(graph: Graph, seeds: readonly Value[]): ReadonlySet<string> {
  const late = new Set(seeds.map((value) => value.name));
  for (const node of graph.nodes)
    if (node.inputs.some((name) => name !== null && late.has(name)))
      for (const output of node.outputs) late.add(output);
  return late;
}

/** The part of a graph that computes some of its values when others are given. */
function subgraph(graph: Graph, part: string, outputs: readonly Value[], given: ReadonlySet<string>): Graph {
  const needed = new Set(outputs.map((value) => value.name));
  const nodes: GraphNode[] = [];
  for (const node of [...graph.nodes].reverse()) {
    if (!node.outputs.some((name) => needed.has(name) && !given.has(name))) continue;
    nodes.unshift(node);
    for (const name of node.inputs) if (name !== null) needed.add(name);
  }
  const slim = nodes.map((node) => withoutUnread(node, needed));
  const made = new Set(slim.flatMap((node) => node.outputs));
  const used = (name: string): boolean => needed.has(name) && !made.has(name);
  const values = new Map([...graph.values].filter(([name]) => used(name) || made.has(name)));
  const inputs = [...graph.values.values()].filter(({ name }) => used(name) && !graph.constants.has(name));
  const result: Graph = {
    name: `${graph.name}, ${part}`,
    inputs,
    outputs,
    constants: new Map([...graph.constants].filter(([name]) => used(name))),
    nodes: slim,
    values,
  };
  verify(result);
  return result;
}

/** Results at the end of a node's list that nothing reads would only be computed in vain. */
function withoutUnread(node: GraphNode, needed: ReadonlySet<string>): GraphNode {
  const last = node.outputs.findLastIndex((name) => needed.has(name));
  return { ...node, outputs: node.outputs.slice(0, last + 1) };
}
