// Runs small graphs over numbers.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Graph, toOnnx } from '../../../src/graph/index.js';
import { openRuntime, type TensorView } from '../../../src/runtime/index.js';

export type Sizes = Readonly<Record<string, number>>;

export interface RunningGraph {
  /** Runs with these inputs; gives every output. */
  run(inputs: Readonly<Record<string, TensorView>>): Promise<Record<string, Float32Array>>;
  close(): void;
}

/** @param sizes what the open axes of the graph stand for */
export async function openGraph(graph: Graph, sizes: Sizes = {}): Promise<RunningGraph> {
  const folder = mkdtempSync(join(tmpdir(), 'searchloop-graph-'));
  try {
    const file = join(folder, 'graph.onnx');
    writeFileSync(file, toOnnx(graph));
    const session = await (await openRuntime()).openSession(file, { threads: 1, spinning: false });
    const binding = session.createBinding();
    return {
      async run(inputs) {
        for (const { name } of graph.inputs) binding.bindInput(name, inputs[name]!);
        const outputs = graph.outputs.map(({ name, shape }) => {
          const numbers = shape.map((size) => sizeOf(size, sizes));
          const data = new Float32Array(numbers.reduce((product, size) => product * size, 1));
          binding.bindOutput(name, { type: 'float32', shape: numbers, data });
          return [name, data] as const;
        });
        await binding.run();
        return Object.fromEntries(outputs);
      },
      close: () => session.close(),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A dimension such as `3*T` in numbers. */
export function sizeOf(dimension: number | string, sizes: Sizes): number {
  return String(dimension)
    .split('*')
    .reduce((product, factor) => product * (sizes[factor] ?? Number(factor)), 1);
}
