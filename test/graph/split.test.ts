import { type Graph, GraphBuilder, gradients, splitAtSeeds, type Value } from '../../src/graph/index.js';
import { openGraph } from './support/run-graph.js';

/** y = exp(sigmoid(x) w), with the gradients of x and w. */
function joint(): { graph: Graph; seeds: Value[]; values: Record<string, Value> } {
  const graph = new GraphBuilder('test');
  const x = graph.input('x', 'float32', ['T', 2]);
  const w = graph.input('w', 'float32', [2, 2]);
  const inner = graph.op('Sigmoid', [x], { name: 'inner' });
  const product = graph.op('MatMul', [inner, w], { name: 'product' });
  const y = graph.op('Exp', [product], { name: 'y' });
  graph.output('y', y);
  const seed = graph.input('y.grad', 'float32', ['T', 2]);
  const found = gradients(graph, new Map([[y, seed]]), [x, w]);
  graph.output('x.grad', found.get(x)!);
  graph.output('w.grad', found.get(w)!);
  return { graph: graph.build(), seeds: [seed], values: { inner, product, y } };
}

const view = (shape: number[], values: number[]) =>
  ({ type: 'float32', shape, data: Float32Array.from(values) }) as const;

const names = (values: readonly Value[]): string[] => values.map(({ name }) => name);

test('one graph before the seeds, one after; what is not kept is computed again', async () => {
  const { graph, seeds, values } = joint();
  const { score, forward, backward } = splitAtSeeds(graph, { seeds, kept: [values['y']!] });
  expect(names(score.outputs)).toEqual(['y']);
  expect(names(forward.outputs)).toEqual(['y']);
  expect(names(backward.inputs).sort()).toEqual(['w', 'x', 'y', 'y.grad']);
  expect(names(backward.outputs)).toEqual(['x.grad', 'w.grad']);
  expect(backward.nodes.map(({ name }) => name)).toContain('inner');
  expect(backward.nodes.map(({ op }) => op)).not.toContain('Exp');
});

test.each([[[]], [['inner']], [['product']], [['inner', 'y']]])(
  'kept: %j: the same numbers',
  async (kept) => {
    const { graph, seeds, values } = joint();
    const parts = splitAtSeeds(graph, { seeds, kept: kept.map((name) => values[name]!) });
    const inputs = {
      x: view([2, 2], [0.1, -0.4, 0.8, 0.3]),
      w: view([2, 2], [1, 2, -0.5, 0.25]),
      'y.grad': view([2, 2], [1, -1, 0.5, 2]),
    };
    const sizes = { T: 2 };
    const [whole, first, second] = [
      await openGraph(graph, sizes),
      await openGraph(parts.forward, sizes),
      await openGraph(parts.backward, sizes),
    ];
    const expected = await whole.run(inputs);
    const results = await first.run(inputs);
    expect([...results['y']!]).toEqual([...expected['y']!]);
    const given = Object.fromEntries(
      Object.entries(results).map(([name, data]) => [name, view([2, 2], [...data])]),
    );
    const gradients = await second.run({ ...inputs, ...given });
    expect([...gradients['x.grad']!]).toEqual([...expected['x.grad']!]);
    expect([...gradients['w.grad']!]).toEqual([...expected['w.grad']!]);
    for (const running of [whole, first, second]) running.close();
  },
);

test('what depends on a seed cannot be kept', () => {
  const { graph, seeds } = joint();
  const late = graph.values.get('x.grad')!;
  expect(() => splitAtSeeds(graph, { seeds, kept: [late] })).toThrow('kept value "x.grad" depends on a seed');
  const stranger = { ...late, name: 'stranger' };
  expect(() => splitAtSeeds(graph, { seeds, kept: [stranger] })).toThrow('"stranger" is not in the graph');
});
