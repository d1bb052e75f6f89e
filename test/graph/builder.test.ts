import type { Shape } from '../../src/graph/dimension.js';
import { GraphBuilder, type Value } from '../../src/graph/index.js';

/** A graph of one node; the function adds it to inputs of these shapes. */
function apply(shapes: readonly Shape[], add: (graph: GraphBuilder, inputs: Value[]) => Value): Value {
  const graph = new GraphBuilder('test');
  const inputs = shapes.map((shape, index) => graph.input(`x${index}`, 'float32', shape));
  return add(graph, inputs);
}

const shapeOf = (...parameters: Parameters<typeof apply>): Shape => apply(...parameters).shape;

describe('shape rules', () => {
  test('products', () => {
    expect(
      shapeOf(
        [
          ['B', 'S', 64],
          [64, 8],
        ],
        (g, x) => g.op('MatMul', x),
      ),
    ).toEqual(['B', 'S', 8]);
    expect(
      shapeOf(
        [
          ['B', 1, 2, 3],
          [5, 3, 4],
        ],
        (g, x) => g.op('MatMul', x),
      ),
    ).toEqual(['B', 5, 2, 4]);
    const turned = { attributes: { transB: 1 } };
    expect(
      shapeOf(
        [
          ['S', 64],
          [8, 64],
        ],
        (g, x) => g.op('FusedMatMul', x, turned),
      ),
    ).toEqual(['S', 8]);
  });

  test('shapes by constants', () => {
    const reshape = (shape: Shape, target: number[]) =>
      shapeOf([shape], (g, [x]) => g.op('Reshape', [x!, g.integers(target)]));
    expect(reshape(['B', 'S', 64], [-1, 64])).toEqual(['B*S', 64]);
    expect(reshape(['B', 'S', 96], [0, 0, 4, -1])).toEqual(['B', 'S', 4, 24]);
    const split = apply(
      [['B', 10]],
      (g, [x]) => g.ops('Split', [x!, g.integers([3, 7])], { attributes: { axis: -1 } })[1]!,
    );
    expect(split.shape).toEqual(['B', 7]);
    const sum = (keepdims: number) =>
      shapeOf([['B', 'S', 4]], (g, [x]) =>
        g.op('ReduceSum', [x!, g.integers([1])], { attributes: { keepdims } }),
      );
    expect(sum(0)).toEqual(['B', 4]);
    expect(sum(1)).toEqual(['B', 1, 4]);
  });

  test('attention takes queries, keys and values packed or apart', () => {
    const attention = (packed: boolean) => {
      const graph = new GraphBuilder('test');
      const query = graph.input('q', 'float32', ['B', 'S', packed ? 128 : 64]);
      const [key, value] = packed
        ? [null, null]
        : ['k', 'v'].map((n) => graph.input(n, 'float32', ['B', 'S', 32]));
      const past = ['pk', 'pv'].map((n) => graph.input(n, 'float32', ['B', 2, 'T', 16]));
      const lengths = graph.input('l', 'int32', ['B']);
      const total = graph.input('t', 'int32', [1]);
      const attributes = { num_heads: 4, kv_num_heads: 2 };
      return graph.ops('GroupQueryAttention', [query, key!, value!, ...past, lengths, total], { attributes });
    };
    for (const packed of [true, false])
      expect(attention(packed).map((item) => item.shape)).toEqual([
        ['B', 'S', 64],
        ['B', 2, 'T', 16],
        ['B', 2, 'T', 16],
      ]);
  });
});

describe('mistakes are reported where they are made, with node, inputs and shapes', () => {
  test.each<[string, readonly Shape[], (graph: GraphBuilder, inputs: Value[]) => Value, string]>([
    [
      'inner dimensions',
      [
        [2, 16, 64],
        [32, 64],
      ],
      (g, x) => g.op('MatMul', x, { name: 'q_proj' }),
      'MatMul "q_proj": inner dimensions differ; inputs: x0 float32[2,16,64], x1 float32[32,64]',
    ],
    ['broadcast', [['B'], ['S']], (g, x) => g.op('Add', x), 'do not broadcast'],
    [
      'reshape',
      [['B', 6]],
      (g, [x]) => g.op('Reshape', [x!, g.integers([-1, 4])]),
      'cannot be reshaped to [-1,4]',
    ],
    [
      'split',
      [['B', 6]],
      (g, [x]) => g.op('Split', [x!, g.integers([2, 3])], { attributes: { axis: 1 } }),
      'the sizes add up to 5',
    ],
    ['missing input', [['B']], (g, [x]) => g.op('Add', [x!, null]), 'input 1 is missing'],
    ['element type', [['B']], (g, [x]) => g.op('Gather', [x!, x!]), 'input 1 must be int64, not float32'],
    [
      'axis',
      [['B']],
      (g, [x]) => g.op('LogSoftmax', [x!], { attributes: { axis: 1 } }),
      'axis 1 is outside rank 1',
    ],
    [
      'scale of a norm',
      [['B', 8], [4]],
      (g, x) => g.op('SimplifiedLayerNormalization', x, { attributes: { axis: -1 } }),
      'input 1 must be [8]',
    ],
  ])('%s', (_, shapes, add, message) => {
    expect(() => apply(shapes, add)).toThrow(
      expect.objectContaining({ code: 'graph_invalid', message: expect.stringContaining(message) }),
    );
  });

  test('names are unique, and outputs are results', () => {
    const graph = new GraphBuilder('test');
    const x = graph.input('x', 'float32', ['B']);
    expect(() => graph.input('x', 'float32', ['B'])).toThrow(/"x": the name is taken/);
    const y = graph.op('Sigmoid', [x], { name: 'y' });
    expect(() => graph.output('x', y)).toThrow(/the name is taken/);
    expect(() => graph.output('out', x)).toThrow(/x is not the result of a node/);
    graph.output('out', y);
    expect(() => graph.output('again', y)).toThrow(/is an output already/);
  });
});

test('constants with the same content are made once', () => {
  const graph = new GraphBuilder('test');
  expect(graph.integers([1, 2])).toBe(graph.integers([1, 2]));
  expect(graph.integers([1])).not.toBe(graph.integers([1], []));
  expect(graph.scalar(2)).toBe(graph.scalar(2));
});
