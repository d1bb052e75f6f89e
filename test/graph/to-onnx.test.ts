import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Graph, GraphBuilder, toOnnx } from '../../src/graph/index.js';
import { allocate, openRuntime, type TensorView } from '../../src/runtime/index.js';

async function run(
  graph: Graph,
  inputs: Record<string, TensorView>,
  shape: number[],
  files: Record<string, Uint8Array> = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'searchloop-graph-'));
  writeFileSync(join(folder, 'graph.onnx'), toOnnx(graph));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
  const session = await (await openRuntime()).openSession(join(folder, 'graph.onnx'), {
    threads: 1,
    spinning: false,
  });
  const binding = session.createBinding();
  const output = allocate('float32', shape);
  for (const [name, view] of Object.entries(inputs)) binding.bindInput(name, view);
  binding.bindOutput('y', output);
  await binding.run();
  const { inputs: declared } = session;
  session.close();
  rmSync(folder, { recursive: true });
  return { values: [...(output.data as Float32Array)], declared };
}

const floats = (shape: number[], ...values: number[]): TensorView => {
  const view = allocate('float32', shape);
  (view.data as Float32Array).set(values);
  return view;
};

test('inline and external constants reach onnxruntime, names and symbols stay', async () => {
  const graph = new GraphBuilder('sample');
  const x = graph.input('x', 'float32', ['B', 2]);
  const inside = graph.constant('inside', Float32Array.of(1, 2, 3, 4), [2, 2]);
  const bytes = new Uint8Array(64);
  new Float32Array(bytes.buffer, 32, 2).set([10, 20]);
  const outside = graph.external('outside', 'float32', [2], { file: 'w.bin', byteOffset: 32, byteLength: 8 });
  graph.output('y', graph.op('Add', [graph.op('MatMul', [x, inside]), outside]));
  const { values, declared } = await run(graph.build(), { x: floats([1, 2], 1, 1) }, [1, 2], {
    'w.bin': bytes,
  });
  expect(values).toEqual([14, 26]);
  expect(declared).toEqual([{ name: 'x', type: 'float32', shape: ['B', 2] }]);
});

test('attributes of every kind are written as their kind', async () => {
  const graph = new GraphBuilder('attributes');
  const x = graph.input('x', 'float32', [2, 2]);
  // alpha is 2: a whole number that must be written as a float all the same.
  const product = graph.op('FusedMatMul', [x, x], { attributes: { transB: 1, alpha: 2 } });
  graph.output('y', product);
  const { values } = await run(graph.build(), { x: floats([2, 2], 1, 2, 3, 4) }, [2, 2]);
  expect(values).toEqual([10, 22, 22, 50]);
});

test('equal graphs give equal bytes', () => {
  const make = () => {
    const graph = new GraphBuilder('same');
    graph.output('y', graph.op('Sigmoid', [graph.input('x', 'float32', ['B'])]));
    return toOnnx(graph.build());
  };
  expect(make()).toEqual(make());
});
