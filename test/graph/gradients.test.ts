import { GraphBuilder, gradients, type Value } from '../../src/graph/index.js';
import type { OpType } from '../../src/graph/op-type.js';
import { OPS } from '../../src/graph/ops/index.js';
import { type Case, differences } from './support/central-differences.js';
import { openGraph } from './support/run-graph.js';

jest.setTimeout(60_000);

type Attributes = Readonly<Record<string, number | readonly number[]>>;

/** A case of one operation on its inputs in order. */
function single(
  op: OpType,
  shapes: readonly (readonly (number | string)[])[],
  attributes: Attributes = {},
  sizes: Record<string, number> = {},
): Case {
  return {
    name: `${op} ${JSON.stringify(shapes)} ${JSON.stringify(attributes)}`,
    inputs: Object.fromEntries(shapes.map((shape, index) => [`x${index}`, shape])),
    sizes,
    build: (graph, inputs) => [graph.op(op, Object.values(inputs), { attributes })],
  };
}

const ELEMENTWISE: readonly OpType[] = ['Add', 'Sub', 'Mul', 'Div'];

const CASES: readonly Case[] = [
  ...ELEMENTWISE.flatMap((op) => [
    single(op, [
      [2, 3],
      [2, 3],
    ]),
    single(op, [[2, 3], [3]]),
    single(op, [
      [2, 1, 3],
      [4, 1],
    ]),
    single(op, [[], [2, 2]]),
    single(
      op,
      [
        ['T', 3],
        [1, 3],
      ],
      {},
      { T: 2 },
    ),
    single(
      op,
      [
        ['T', 1],
        ['T', 3],
      ],
      {},
      { T: 1 },
    ),
  ]),
  single('Neg', [[2, 3]]),
  single('Exp', [[2, 3]]),
  single('Sigmoid', [[2, 3]]),
  single('Softmax', [[2, 4]], { axis: -1 }),
  single('Softmax', [[2, 1]], { axis: -1 }),
  single('Softmax', [['T', 2, 3]], { axis: -1 }, { T: 2 }),
  single('LogSoftmax', [[2, 4]], { axis: -1 }),
  single('LogSoftmax', [[1, 1]], { axis: -1 }),
  single('Transpose', [[2, 3, 4]], { perm: [2, 0, 1] }),
  single('MatMul', [
    [2, 3],
    [3, 4],
  ]),
  single('MatMul', [
    [2, 2, 3],
    [3, 2],
  ]),
  single('MatMul', [
    [2, 2, 3],
    [2, 3, 2],
  ]),
  single('MatMul', [
    [2, 2, 3],
    [1, 3, 2],
  ]),
  single(
    'MatMul',
    [
      ['T', 3],
      [3, 1],
    ],
    {},
    { T: 1 },
  ),
  ...[0, 1].flatMap((transA) =>
    [0, 1].flatMap((transB) => [
      single('FusedMatMul', [transA ? [3, 2] : [2, 3], transB ? [4, 3] : [3, 4]], {
        transA,
        transB,
        alpha: 0.5,
      }),
      single('FusedMatMul', [transA ? [2, 3, 2] : [2, 2, 3], transB ? [2, 2, 3] : [2, 3, 2]], {
        transA,
        transB,
      }),
    ]),
  ),
  single(
    'FusedMatMul',
    [
      ['T', 2, 3],
      [4, 3],
    ],
    { transB: 1 },
    { T: 2 },
  ),
  {
    name: 'Reshape with an open axis',
    inputs: { x: ['T', 6] },
    sizes: { T: 2 },
    build: (graph, { x }) => [graph.op('Reshape', [x!, graph.integers([-1, 2, 3])])],
  },
  ...[0, 1].flatMap((keepdims) =>
    (['ReduceSum', 'ReduceMean'] as const).flatMap((op) => [
      {
        name: `${op} ${keepdims}`,
        inputs: { x: [2, 3, 2] },
        build: (graph: GraphBuilder, { x }: Readonly<Record<string, Value>>) => [
          graph.op(op, [x!, graph.integers([-1, 0])], { attributes: { keepdims } }),
        ],
      },
    ]),
  ),
  {
    name: 'ReduceSum over an open axis',
    inputs: { x: ['T', 2] },
    sizes: { T: 3 },
    build: (graph, { x }) => [
      graph.op('ReduceSum', [x!, graph.integers([0])], { attributes: { keepdims: 1 } }),
    ],
  },
  {
    name: 'Expand',
    inputs: { x: [2, 1], like: [2, 3] },
    build: (graph, { x, like }) => [
      graph.op('Expand', [x!, graph.op('Shape', [like!])]),
      graph.op('Neg', [like!]),
    ],
  },
  {
    name: 'Concat and Split, one part unused',
    inputs: { x: [2, 3], y: [2, 2] },
    build(graph, { x, y }) {
      const joined = graph.op('Concat', [x!, y!], { attributes: { axis: 1 } });
      const [first, , last] = graph.ops('Split', [joined, graph.integers([1, 2, 2])], {
        attributes: { axis: -1 },
      });
      return [graph.op('Exp', [first!]), last!];
    },
  },
  {
    name: 'GatherElements',
    inputs: { x: [3, 4] },
    indices: { at: { shape: [3, 1], values: [2, 0, 2] } },
    build: (graph, { x, at }) => [graph.op('GatherElements', [x!, at!], { attributes: { axis: -1 } })],
  },
  ...[
    [2, 3],
    ['T', 2, 4],
    [1, 1],
  ].map((shape) => ({
    name: `SimplifiedLayerNormalization ${shape}`,
    inputs: { x: shape, scale: [shape.at(-1)!] },
    sizes: { T: 2 },
    build: (graph: GraphBuilder, { x, scale }: Readonly<Record<string, Value>>) => [
      graph.op('SimplifiedLayerNormalization', [x!, scale!], {
        attributes: { axis: -1, epsilon: 0.1, stash_type: 1 },
      }),
    ],
  })),
  {
    name: 'RotaryEmbedding',
    inputs: { x: [1, 3, 16] },
    indices: { positions: { shape: [1, 3], values: [0, 2, 5] } },
    build(graph, { x, positions }) {
      const angles = Array.from({ length: 6 * 4 }, (_, at) => Math.floor(at / 4) * 0.7 ** (at % 4));
      const table = (name: string, of: (angle: number) => number): Value =>
        graph.op('Neg', [
          graph.constant(
            name,
            Float32Array.from(angles, (angle) => -of(angle)),
            [6, 4],
          ),
        ]);
      return [
        graph.op('RotaryEmbedding', [x!, positions!, table('cosines', Math.cos), table('sines', Math.sin)], {
          attributes: { num_heads: 2 },
        }),
      ];
    },
  },
  {
    name: 'an input used three times',
    inputs: { x: [2, 2] },
    build: (graph, { x }) => [graph.op('Mul', [graph.op('Mul', [x!, x!]), graph.op('Exp', [x!])])],
  },
  {
    name: 'a result that is used further on',
    inputs: { x: [2, 2], w: [2, 2] },
    build(graph, { x, w }) {
      const inner = graph.op('MatMul', [x!, w!]);
      return [inner, graph.op('Sigmoid', [inner])];
    },
  },
];

const tested = new Set<string>();

test.each(CASES.map((item) => [item.name, item] as const))('%s', async (_, item) => {
  const { worst, operations } = await differences(item);
  for (const op of operations) tested.add(op);
  expect(worst).toBeLessThan(2e-3);
});

test('every operation with a gradient rule is among the cases', () => {
  const ruled = Object.entries(OPS).filter(([, { gradient }]) => gradient !== undefined);
  expect(ruled.map(([op]) => op).filter((op) => !tested.has(op))).toEqual([]);
});

test('an empty selection has an empty gradient, and nothing for what it was picked by', async () => {
  const graph = new GraphBuilder('empty');
  const x = graph.input('x', 'float32', ['N', 4]);
  const at = graph.input('at', 'int64', ['N', 1]);
  const w = graph.input('w', 'float32', [4, 4]);
  const logits = graph.op('LogSoftmax', [graph.op('MatMul', [x, w])], { attributes: { axis: -1 } });
  const picked = graph.op('GatherElements', [logits, at], { attributes: { axis: -1 } });
  const found = gradients(graph, new Map([[picked, graph.input('seed', 'float32', ['N', 1])]]), [x, w]);
  graph.output('dx', found.get(x)!);
  graph.output('dw', found.get(w)!);
  const running = await openGraph(graph.build(), { N: 0 });
  const none = { type: 'float32', shape: [0, 1], data: new Float32Array(0) } as const;
  const { dx, dw } = await running.run({
    x: { ...none, shape: [0, 4] },
    at: { type: 'int64', shape: [0, 1], data: new BigInt64Array(0) },
    w: { type: 'float32', shape: [4, 4], data: new Float32Array(16).fill(1) },
    seed: none,
  });
  expect([...dx!]).toEqual([]);
  expect([...dw!]).toEqual(Array<number>(16).fill(0));
  running.close();
});

describe('the walk', () => {
  const cumulative = (graph: GraphBuilder, x: Value): Value =>
    graph.op('CumSum', [x, graph.integers([0], [])], { name: 'running' });

  test('names an operation without a rule, and the way from it to the seed', () => {
    const graph = new GraphBuilder('test');
    const x = graph.input('x', 'float32', [3]);
    const y = graph.op('Exp', [graph.op('Neg', [cumulative(graph, x)], { name: 'middle' })], {
      name: 'last',
    });
    const seeds = new Map([[y, graph.input('seed', 'float32', [3])]]);
    expect(() => gradients(graph, seeds, [x])).toThrow(
      'CumSum "running" has no gradient rule; way: running -> middle -> last',
    );
  });

  test('asks no rule where no target needs it', () => {
    const graph = new GraphBuilder('test');
    const [x, w] = [graph.input('x', 'float32', [3]), graph.input('w', 'float32', [3])];
    const y = graph.op('Mul', [cumulative(graph, x), w]);
    const before = graph.nodes.length;
    const found = gradients(graph, new Map([[y, graph.input('seed', 'float32', [3])]]), [w]);
    expect([...found.keys()]).toEqual([w]);
    // One product: none for the running sum.
    expect(graph.nodes.length).toBe(before + 1);
  });

  test('leaves out a target that no seed depends on', () => {
    const graph = new GraphBuilder('test');
    const [x, other] = [graph.input('x', 'float32', [3]), graph.input('other', 'float32', [3])];
    const y = graph.op('Exp', [x]);
    graph.op('Exp', [other]);
    const found = gradients(graph, new Map([[y, graph.input('seed', 'float32', [3])]]), [x, other]);
    expect(found.has(other)).toBe(false);
  });

  test('gives the gradient of a value between', () => {
    const graph = new GraphBuilder('test');
    const x = graph.input('x', 'float32', [3]);
    const middle = graph.op('Neg', [x]);
    const seed = graph.input('seed', 'float32', [3]);
    const found = gradients(graph, new Map([[graph.op('Neg', [middle]), seed]]), [middle]);
    expect(found.get(middle)!.shape).toEqual([3]);
  });

  test('refuses an index as a target, and a seed of another shape', () => {
    const graph = new GraphBuilder('test');
    const x = graph.input('x', 'float32', [2, 3]);
    const at = graph.input('at', 'int64', [2, 1]);
    const y = graph.op('GatherElements', [x, at], { name: 'picked', attributes: { axis: -1 } });
    const seed = graph.input('seed', 'float32', [2, 1]);
    expect(() => gradients(graph, new Map([[y, seed]]), [at])).toThrow(
      'picked": input 1 (at) has no gradient',
    );
    expect(() => gradients(graph, new Map([[y, x]]), [x])).toThrow('is [2,3], not [2,1]');
  });
});

describe('a fused gradient', () => {
  /** y = exp(-x), with a rule of its own for the whole. */
  function build(graph: GraphBuilder, x: Value): { middle: Value; y: Value } {
    const middle = graph.op('Neg', [x]);
    const y = graph.op('Exp', [middle]);
    graph.fuseGradient(y, [x], (call) => [() => call.op('Neg', [call.mul(call.dy, y)])]);
    return { middle, y };
  }

  test('goes past the nodes between, and is right', async () => {
    const fused: Case = {
      name: 'fused',
      inputs: { x: [2, 3] },
      build: (graph, { x }) => [build(graph, x!).y],
    };
    expect((await differences(fused)).worst).toBeLessThan(2e-3);
    const graph = new GraphBuilder('test');
    const x = graph.input('x', 'float32', [3]);
    const { y } = build(graph, x);
    gradients(graph, new Map([[y, graph.input('seed', 'float32', [3])]]), [x]);
    expect(graph.nodes.map(({ op }) => op)).toEqual(['Neg', 'Exp', 'Mul', 'Neg']);
  });

  test('adds to what flows into a value between by other ways', async () => {
    const { worst } = await differences({
      name: 'both ways',
      inputs: { x: [2, 3] },
      build(graph, { x }) {
        const { middle, y } = build(graph, x!);
        return [y, graph.op('Sigmoid', [middle])];
      },
    });
    expect(worst).toBeLessThan(2e-3);
  });
});
