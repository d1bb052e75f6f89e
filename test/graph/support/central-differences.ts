// Compares the gradients of a small graph with central differences of its results.

import type { Shape } from '../../../src/graph/dimension.js';
import { type Graph, GraphBuilder, gradients, type Value } from '../../../src/graph/index.js';
import type { TensorView } from '../../../src/runtime/index.js';
import { openGraph, type Sizes, sizeOf } from './run-graph.js';

export interface Case {
  readonly name: string;
  /** Float32 inputs that are differentiated. */
  readonly inputs: Readonly<Record<string, Shape>>;
  /** Int64 inputs. */
  readonly indices?: Readonly<
    Record<string, { readonly shape: readonly number[]; readonly values: readonly number[] }>
  >;
  readonly sizes?: Sizes;
  /** Adds the nodes and returns the results that the loss sees. */
  build(graph: GraphBuilder, inputs: Readonly<Record<string, Value>>): readonly Value[];
}

/** Half of the distance between two points: errors of float32 and of the second order are of one size then. */
const STEP = 1e-2;

function pseudoRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    // Away from zero, so that division is smooth.
    const number = state / 2 ** 31;
    return number < 0.5 ? -0.4 - number : number;
  };
}

function numbers(shape: Shape, sizes: Sizes, next: () => number): TensorView {
  const whole = shape.map((size) => sizeOf(size, sizes));
  const data = Float32Array.from({ length: whole.reduce((product, size) => product * size, 1) }, next);
  return { type: 'float32', shape: whole, data };
}

interface Built {
  readonly forward: Graph;
  readonly joint: Graph;
  readonly results: readonly string[];
}

function build(test: Case): Built {
  const make = (differentiated: boolean): { graph: Graph; results: readonly string[] } => {
    const graph = new GraphBuilder(test.name);
    const floats = Object.entries(test.inputs).map(
      ([name, shape]) => [name, graph.input(name, 'float32', shape)] as const,
    );
    const integers = Object.entries(test.indices ?? {}).map(
      ([name, { shape }]) => [name, graph.input(name, 'int64', shape)] as const,
    );
    const results = test.build(graph, Object.fromEntries([...floats, ...integers]));
    for (const [index, result] of results.entries()) graph.output(`result.${index}`, result);
    if (differentiated) {
      const seeds = results.map(
        (result, index) => [result, graph.input(`seed.${index}`, 'float32', result.shape)] as const,
      );
      const found = gradients(
        graph,
        new Map(seeds),
        floats.map(([, value]) => value),
      );
      for (const [name, value] of floats) {
        const gradient = found.get(value);
        // A gradient may be a seed itself; an output has to come from a node.
        if (gradient) graph.output(`d ${name}`, graph.op('Add', [gradient, graph.scalar(0)]));
      }
    }
    return { graph: graph.build(), results: results.map((_, index) => `result.${index}`) };
  };
  const forward = make(false);
  return { forward: forward.graph, joint: make(true).graph, results: forward.results };
}

/** Largest difference between gradients and central differences, and the operations of the graph. */
export async function differences(test: Case): Promise<{ worst: number; operations: ReadonlySet<string> }> {
  const { forward, joint } = build(test);
  const sizes = test.sizes ?? {};
  const next = pseudoRandom(test.name.length + 1);
  const inputs: Record<string, TensorView> = {};
  for (const [name, shape] of Object.entries(test.inputs)) inputs[name] = numbers(shape, sizes, next);
  for (const [name, { shape, values }] of Object.entries(test.indices ?? {}))
    inputs[name] = { type: 'int64', shape, data: BigInt64Array.from(values, BigInt) };
  const seeds = forward.outputs.map(
    ({ shape }, index) => [`seed.${index}`, numbers(shape, sizes, next)] as const,
  );
  const [plain, whole] = [await openGraph(forward, sizes), await openGraph(joint, sizes)];
  try {
    const found = await whole.run({ ...inputs, ...Object.fromEntries(seeds) });
    const loss = async (): Promise<number> => {
      const results = await plain.run(inputs);
      return seeds.reduce((sum, [, { data }], index) => {
        const result = results[`result.${index}`]!;
        return sum + result.reduce((part, value, at) => part + value * Number(data[at]), 0);
      }, 0);
    };
    let worst = 0;
    for (const name of Object.keys(test.inputs)) {
      const data = inputs[name]!.data as Float32Array;
      const gradient = found[`d ${name}`]!;
      expect(gradient.length).toBe(data.length);
      for (let at = 0; at < data.length; at++) {
        const value = data[at]!;
        data[at] = value + STEP;
        const above = await loss();
        data[at] = value - STEP;
        const below = await loss();
        data[at] = value;
        const difference = Math.abs((above - below) / (2 * STEP) - gradient[at]!);
        worst =
          difference <= worst ? worst : Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
      }
    }
    return { worst, operations: new Set(forward.nodes.map(({ op }) => op)) };
  } finally {
    plain.close();
    whole.close();
  }
}
