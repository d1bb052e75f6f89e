import type { GraphNode } from '../../src/graph/graph.js';
import { type Graph, GraphBuilder, type Value } from '../../src/graph/index.js';
import { verify } from '../../src/graph/verify.js';

function sample(): Graph {
  const graph = new GraphBuilder('sample');
  const x = graph.input('x', 'float32', ['B', 4]);
  const w = graph.constant('w', new Float32Array(12), [4, 3]);
  graph.output('y', graph.op('MatMul', [x, w], { name: 'product' }));
  return graph.build();
}

const withNode = (graph: Graph, change: Partial<GraphNode>): Graph => ({
  ...graph,
  nodes: [{ ...graph.nodes[0]!, ...change }],
});

const withValue = (graph: Graph, value: Value): Graph => ({
  ...graph,
  values: new Map(graph.values).set(value.name, value),
});

test('a built graph is legal', () => {
  expect(() => verify(sample())).not.toThrow();
});

test.each<[string, (graph: Graph) => Graph, string]>([
  [
    'an input that nobody defines',
    (g) => withNode(g, { inputs: ['x', 'v'] }),
    'input "v" is not defined before it',
  ],
  ['a value defined twice', (g) => withNode(g, { outputs: ['x'] }), 'value "x" is defined twice'],
  [
    'two nodes of one name',
    (g) => ({ ...g, nodes: [g.nodes[0]!, { ...g.nodes[0]!, outputs: ['z'] }] }),
    'two nodes are called "product"',
  ],
  ['an unknown attribute', (g) => withNode(g, { attributes: { alpha: 1 } }), 'has no attribute "alpha"'],
  [
    'a missing attribute',
    (g) => withNode(g, { op: 'LogSoftmax', inputs: ['x'] }),
    'attribute "axis" must be int',
  ],
  ['too few inputs', (g) => withNode(g, { inputs: ['x'] }), 'takes 2 to 2 inputs, not 1'],
  [
    'a stated shape that the rule does not give',
    (g) => withValue(g, { name: 'y', type: 'float32', shape: ['B', 4] }),
    'result "y" is float32[B,3], not float32[B,4]',
  ],
  [
    'a stated type that the rule does not give',
    (g) => withValue(g, { name: 'y', type: 'int64', shape: ['B', 3] }),
    'is float32[B,3], not int64[B,3]',
  ],
  [
    'an output that nobody makes',
    (g) => ({ ...g, outputs: [{ name: 'z', type: 'float32', shape: [] }] }),
    'output "z" is not defined',
  ],
  [
    'a constant of the wrong length',
    (g) => ({
      ...g,
      constants: new Map(g.constants).set('w', {
        value: g.constants.get('w')!.value,
        data: new Uint8Array(4),
      }),
    }),
    'constant "w" float32[4,3] has 4 bytes, not 48',
  ],
])('%s is found', (_, change, message) => {
  expect(() => verify(change(sample()))).toThrow(
    expect.objectContaining({ code: 'graph_invalid', message: expect.stringContaining(message) }),
  );
});
