// A decoder for training, cut into stages that run one after the other: before attention, attention, after attention for
// each layer, then the head. Their weights are inputs, so one set of graphs serves all layers, and the sequences of a
// batch lie side by side, T tokens in all: only attention knows where one ends.

import {
  type Graph,
  GraphBuilder,
  gradients,
  type SplitGraphs,
  splitAtSeeds,
  type Value,
} from '../graph/index.js';
import { BLOCK_SIZE } from '../weights/index.js';
import type { DecoderConfig } from './decoder-config.js';
import { StageBuilder, type Trained } from './training-layers.js';

export interface LayerStageOptions {
  readonly trained: Trained;
  /** Whether the gradient of the layer's input is wanted: nothing needs it below the first trained layer. */
  readonly inputGradient: boolean;
}

function split(stage: StageBuilder, kept: readonly Value[]): SplitGraphs {
  const joint = stage.graph.build();
  // A result goes by its output's name.
  const final = kept.map((value) => joint.values.get(stage.resultName(value) ?? value.name) ?? value);
  return splitAtSeeds(joint, { seeds: stage.lateInputs, kept: final });
}

/**
 * x [T, D] to rotated queries, keys and values.
 * Inputs: `x`; `attentionNorm.scale`; `<m>.weight`, `<m>.bias`, `<m>Norm.scale` as the model has them; `positions` int64
 * [1, T]; `cosines`, `sines` [P, headDim / 2]. Outputs for each key head i: `q.<i>` [T, G * headDim], of the G = heads / kvHeads
 * heads that share it, `k.<i>`, `v.<i>` [T, headDim].
 * Backward: `q.<i>.grad`, `k.<i>.grad`, `v.<i>.grad`, and `residual.grad` [T, D], what flows past attention; gives `x.grad`.
 */
export function beforeAttention(config: DecoderConfig, options: LayerStageOptions): SplitGraphs {
  const graph = new GraphBuilder('before attention');
  const stage = new StageBuilder(graph, config, options.trained);
  const { heads, kvHeads, headDim, hiddenSize } = config;
  const x = graph.input('x', 'float32', ['T', hiddenSize]);
  const positions = graph.input('positions', 'int64', [1, 'T']);
  const tables = ['cosines', 'sines'].map((name) => graph.input(name, 'float32', ['P', headDim / 2]));
  const normed = stage.norm('attentionNorm', x);
  const kept: Value[] = [];
  const project = (module: 'q' | 'k' | 'v', count: number): Value => {
    let y = stage.linear(module, normed);
    if (config.qkvBias)
      y = graph.op('Add', [y, stage.weight(`${module}.bias`, [count * headDim])], {
        name: `${module}.biased`,
      });
    if (config.qkNorm && module !== 'v') {
      kept.push(y);
      const perHead = graph.op('Reshape', [y, graph.integers([-1, count, headDim])]);
      y = stage.norm(`${module}Norm`, perHead);
    }
    const row = graph.op('Reshape', [y, graph.integers([1, -1, count * headDim])], { name: `${module}.row` });
    if (module === 'v') return row;
    return graph.op('RotaryEmbedding', [row, positions, ...tables], {
      name: `${module}.rotated`,
      attributes: { num_heads: count },
    });
  };
  for (const [module, count] of [
    ['q', heads],
    ['k', kvHeads],
    ['v', kvHeads],
  ] as const)
    for (const [head, part] of keyHeads(graph, project(module, count), kvHeads).entries())
      stage.result(`${module}.${head}`, part);
  const found = stage.differentiate(options.inputGradient ? [x] : []);
  if (options.inputGradient) {
    const residual = stage.late('residual.grad', ['T', hiddenSize]);
    graph.output('x.grad', graph.op('Add', [found.get(x)!, residual], { name: 'x.summed' }));
  }
  return split(stage, kept);
}

/** [1, T, width] to the [T, width / kvHeads] of each key head. */
function keyHeads(graph: GraphBuilder, x: Value, kvHeads: number): readonly Value[] {
  const width = Number(x.shape[2]);
  const rows = graph.op('Reshape', [x, graph.integers([-1, width])], { name: `${x.name}.rows` });
  const sizes = graph.integers(Array.from({ length: kvHeads }, () => width / kvHeads));
  return kvHeads === 1 ? [rows] : graph.ops('Split', [rows, sizes], { attributes: { axis: 1 } });
}

/**
 * Attention of a block of Q queries to the E keys up to the last of them.
 * Inputs for each key head i: `q.<i>` [Q, G * headDim], of the G = heads / kvHeads heads that share it; `k.<i>`, `v.<i>`
 * [E, headDim]; and `mask` [G * Q, E] added to the scores, the rows of the G heads of a query side by side. Outputs `o.<i>`
 * [Q, G * headDim].
 * Backward: `o.<i>`, `o.<i>.grad`; gives `q.<i>.grad`, and `k.<i>.grad`, `v.<i>.grad` added to `k.<i>.sum`, `v.<i>.sum`. The
 * probabilities p [G * Q, E] are kept as `probabilities.<i>` or computed again:
 *   dp = do v^T,  ds = p (dp - do . o),  dq = scale ds k,  dk = scale ds^T q,  dv = p^T do
 * Key heads are matrices of their own: a head's scores stay in the cache between two nodes, all threads share every product,
 * and nothing is turned round.
 * @see Dao et al. 2022, arXiv:2205.14135, appendix B.2
 */
export function attentionBlock(config: DecoderConfig, keepProbabilities: boolean): SplitGraphs {
  const graph = new GraphBuilder('attention');
  const stage = new StageBuilder(graph, config, { kind: 'lora', ranks: {} });
  const { heads, kvHeads } = config;
  const mask = graph.input('mask', 'float32', [`${heads / kvHeads}*Q`.replace(/^1\*/, ''), 'E']);
  const kept = Array.from({ length: kvHeads }, (_, head) => keyHeadAttention(stage, mask, head));
  const found = stage.differentiate(kept.flatMap(({ inputs }) => inputs));
  for (const { inputs } of kept)
    for (const input of inputs) graph.output(`${input.name}.grad`, found.get(input)!);
  return split(
    stage,
    kept.flatMap(({ o, probabilities }) => (keepProbabilities ? [o, probabilities] : [o])),
  );
}

/** One key head of {@link attentionBlock}. */
function keyHeadAttention(stage: StageBuilder, mask: Value, head: number) {
  const { graph, config } = stage;
  const { heads, kvHeads, headDim } = config;
  const width = (heads / kvHeads) * headDim;
  const scale = 1 / Math.sqrt(headDim);
  const q = graph.input(`q.${head}`, 'float32', ['Q', width]);
  const k = graph.input(`k.${head}`, 'float32', ['E', headDim]);
  const v = graph.input(`v.${head}`, 'float32', ['E', headDim]);
  const reshape = (x: Value, columns: number): Value =>
    graph.op('Reshape', [x, graph.integers([-1, columns])]);
  const queries = reshape(q, headDim);
  const scores = graph.op('Gemm', [queries, k, mask], { attributes: { transB: 1, alpha: scale } });
  const probabilities = graph.op('Softmax', [scores], {
    name: `probabilities.${head}`,
    attributes: { axis: -1 },
  });
  const o = reshape(graph.op('MatMul', [probabilities, v]), width);
  graph.fuseGradient(o, [q, k, v], (call) => {
    const dMixed = reshape(call.dy, headDim);
    // sum over keys of p dp = o . do, which is smaller by far
    const dots = call.sum(reshape(call.op('Neg', [call.mul(call.dy, o)]), headDim), -1);
    const dScores = call.mul(probabilities, call.op('Gemm', [dMixed, v, dots], { transB: 1 }));
    const added = (a: Value, b: Value, to: Value, alpha: number): Value =>
      call.op('Gemm', [a, b, stage.late(`${to.name}.sum`, to.shape)], { transA: 1, alpha });
    return [
      () => reshape(call.op('FusedMatMul', [dScores, k], { alpha: scale }), width),
      () => added(dScores, queries, k, scale),
      () => added(probabilities, dMixed, v, 1),
    ];
  });
  stage.result(`o.${head}`, o);
  return { inputs: [q, k, v], o, probabilities };
}

/**
 * The rest of a layer: y = m + down(silu(gate(n)) * up(n)), n = norm(m), m = x + o(attended).
 * Inputs: `x` [T, D]; `attended.<i>` [T, heads / kvHeads * headDim] of each key head i; `mlpNorm.scale`; `<m>.weight`. Output
 * `y` [T, D].
 * Backward: `y.grad`; gives `attended.<i>.grad` and `residual.grad`, that of m.
 */
export function afterAttention(config: DecoderConfig, { trained }: LayerStageOptions): SplitGraphs {
  const graph = new GraphBuilder('after attention');
  const stage = new StageBuilder(graph, config, trained);
  const { heads, kvHeads, headDim, hiddenSize } = config;
  const x = graph.input('x', 'float32', ['T', hiddenSize]);
  const parts = Array.from({ length: kvHeads }, (_, head) =>
    graph.input(`attended.${head}`, 'float32', ['T', (heads / kvHeads) * headDim]),
  );
  const attended =
    kvHeads === 1 ? parts[0]! : graph.op('Concat', parts, { name: 'attended', attributes: { axis: 1 } });
  const middle = graph.op('Add', [x, stage.linear('o', attended)], { name: 'middle' });
  const normed = stage.norm('mlpNorm', middle);
  const gate = stage.linear('gate', normed);
  const up = stage.linear('up', normed);
  const down = stage.linear('down', gated(graph, gate, up));
  stage.result('y', graph.op('Add', [middle, down], { name: 'out' }));
  const found = stage.differentiate([...parts, middle]);
  for (const part of parts) graph.output(`${part.name}.grad`, found.get(part)!);
  graph.output('residual.grad', found.get(middle)!);
  return split(stage, [middle, gate, up]);
}

/**
 * a = silu(g) u, silu(g) = g s, s = sigmoid(g):
 *   du = da silu(g),  dg = da u (s + silu(g) (1 - s)) = da (a + s (u - a))
 */
function gated(graph: GraphBuilder, gate: Value, up: Value): Value {
  const sigmoid = graph.op('Sigmoid', [gate], { name: 'sigmoid' });
  const silu = graph.op('Mul', [gate, sigmoid], { name: 'silu' });
  const product = graph.op('Mul', [silu, up], { name: 'gated' });
  graph.fuseGradient(product, [gate, up], (call) => [
    () => {
      const rest = call.mul(sigmoid, call.op('Sub', [up, product]));
      return call.mul(call.dy, call.op('Add', [product, rest]));
    },
    () => call.mul(call.dy, silu),
  ]);
  return product;
}

/** Hidden states to log-probabilities, before anything is differentiated. */
function logProbabilities(stage: StageBuilder) {
  const { graph } = stage;
  const { hiddenSize, vocabSize } = stage.config;
  const hidden = graph.input('hidden', 'float32', ['N', hiddenSize]);
  const targets = graph.input('targets', 'int64', ['N', 1]);
  const weight = stage.weight('head.weight', [vocabSize, hiddenSize]);
  const normed = stage.norm('norm', hidden);
  const logits = graph.op('FusedMatMul', [normed, weight], { name: 'logits', attributes: { transB: 1 } });
  const all = graph.op('LogSoftmax', [logits], { name: 'all', attributes: { axis: -1 } });
  const probabilities = graph.op('Exp', [all], { name: 'probabilities' });
  const chosen = graph.op('GatherElements', [all, targets], { name: 'chosen', attributes: { axis: -1 } });
  const weighted = graph.op('Mul', [probabilities, all], { name: 'weighted' });
  const sum = graph.op('ReduceSum', [weighted, graph.integers([-1])], {
    name: 'sum',
    attributes: { keepdims: 1 },
  });
  const entropy = graph.op('Neg', [sum], { name: 'entropy' });
  return { hidden, targets, weight, normed, probabilities, chosen, entropy };
}

/**
 * Log-probabilities of chosen tokens from N rows of hidden states, and the entropy of each row's distribution.
 * Inputs: `hidden` [N, D]; `norm.scale`; `head.weight` [V, D]; `targets` int64 [N, 1].
 * Outputs `logprobs`, `entropies` [N, 1]. Backward: their gradients; gives `hidden.grad`. Logits are computed again.
 */
export function policyHead(config: DecoderConfig, trained: Trained): SplitGraphs {
  const stage = new StageBuilder(new GraphBuilder('policy head'), config, trained);
  const { hidden, chosen, entropy } = logProbabilities(stage);
  stage.result('logprobs', chosen);
  stage.result('entropies', entropy);
  stage.graph.output('hidden.grad', stage.differentiate([hidden]).get(hidden)!);
  return split(stage, []);
}

/**
 * The policy head with the gradient of every row's log-probability, which needs no seed: for a head that is not trained
 * d L / d hidden is that row times d L / d logprob, and no logits have to be computed again.
 *   d logp / d normed = w_target - sum over v of p_v w_v
 * Outputs `logprobs`, `entropies` [N, 1], `direction` [N, D].
 */
export function policyHeadWithDirection(config: DecoderConfig): Graph {
  const graph = new GraphBuilder('policy head with direction');
  const stage = new StageBuilder(graph, config, { kind: 'lora', ranks: {} });
  const { hidden, targets, weight, normed, probabilities, chosen, entropy } = logProbabilities(stage);
  graph.output('logprobs', chosen);
  graph.output('entropies', entropy);
  const rows = graph.op('Gather', [weight, graph.op('Reshape', [targets, graph.integers([-1])])], {
    name: 'targetRows',
    attributes: { axis: 0 },
  });
  const expected = graph.op('MatMul', [probabilities, weight], { name: 'expectedRow' });
  const seeds = new Map([[normed, graph.op('Sub', [rows, expected], { name: 'normed.grad' })]]);
  graph.output('direction', gradients(graph, seeds, [hidden]).get(hidden)!);
  return graph.build();
}

/**
 * Values from N rows of hidden states: v = w . norm(hidden) + b.
 * Inputs: `hidden` [N, D]; `norm.scale`; `value_head.weight` [1, D]; `value_head.bias` [1]. Output `values` [N, 1].
 * Backward: `values.grad`; gives `hidden.grad`, and the head's own gradients added to `value_head.*.sum`.
 */
export function valueHead(config: DecoderConfig, trained: Trained): SplitGraphs {
  const graph = new GraphBuilder('value head');
  const stage = new StageBuilder(graph, config, trained);
  const hidden = graph.input('hidden', 'float32', ['N', config.hiddenSize]);
  const normed = stage.norm('norm', hidden);
  const weight = stage.headWeight('value_head.weight', [1, config.hiddenSize]);
  const bias = stage.headWeight('value_head.bias', [1]);
  const product = graph.op('FusedMatMul', [normed, weight], { name: 'product', attributes: { transB: 1 } });
  stage.result('values', graph.op('Add', [product, bias], { name: 'value' }));
  graph.output('hidden.grad', stage.differentiate([hidden]).get(hidden)!);
  return split(stage, []);
}

/** How the base of a merged weight is held. */
export type BaseForm = 'float32' | '8 bits';

/**
 * base + scale B A for a weight [out, in]: inputs `a` [r, in], `b` [out, r], `scale` [], and `base` f32 [out, in] or, in
 * 8 bits, `values` int8 [blocks, 32] and `scales` f32 [blocks]; output `merged` [out, in].
 */
export function mergedWeight(form: BaseForm, [out, inner]: readonly [number, number]): Graph {
  const graph = new GraphBuilder('merged weight');
  const a = graph.input('a', 'float32', ['R', inner]);
  const b = graph.input('b', 'float32', [out, 'R']);
  const scale = graph.input('scale', 'float32', []);
  const base =
    form === 'float32' ? graph.input('base', 'float32', [out, inner]) : dequantised(graph, out, inner);
  graph.output('merged', graph.op('Gemm', [graph.op('Mul', [b, scale]), a, base], { name: 'sum' }));
  return graph.build();
}

/** Blocks as rows of a matrix: onnxruntime's own blocked form takes twice the time. */
function dequantised(graph: GraphBuilder, out: number, inner: number): Value {
  const blocks = (out * inner) / BLOCK_SIZE;
  const values = graph.input('values', 'int8', [blocks, BLOCK_SIZE]);
  const scales = graph.input('scales', 'float32', [blocks]);
  const rows = graph.op('DequantizeLinear', [values, scales], { name: 'blocks', attributes: { axis: 0 } });
  return graph.op('Reshape', [rows, graph.integers([out, inner])], { name: 'base' });
}
