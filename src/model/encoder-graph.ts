// The graph of an encoder: token ids in, one vector a row out.

import { type Graph, GraphBuilder, type Value } from '../graph/index.js';
import type { EncoderConfig, Pooling } from './encoder-config.js';
import type { EncoderLayerPart } from './encoder-weights.js';
import { storedConstant, type WeightsFile } from './weights-file.js';

/** Keeps a row without tokens, and a vector of length 0, from dividing by 0. */
const SMALLEST_LENGTH = 1e-12;

/**
 * Builds the graph of an encoder.
 *
 * Inputs: `input_ids` int64 [B, S]; `attention_mask` int64 [B, S], 1 on real tokens and 0 on padding, which must stand
 * on the right. Output: `embeddings` f32 [B, D]. Padding changes a row by rounding only.
 */
export function encoderGraph(config: EncoderConfig, weights: WeightsFile, pooling: Pooling): Graph {
  const graph = new GraphBuilder(`${config.architecture} encoder`);
  const ids = graph.input('input_ids', 'int64', ['B', 'S']);
  const mask = graph.input('attention_mask', 'int64', ['B', 'S']);
  const hidden = graph.op('Cast', [mask], { name: 'mask.keys', attributes: { to: 6 } });
  let x = embedTokens(graph, config, weights, ids);
  for (let layer = 0; layer < config.layers; layer++)
    x = encoderLayer({ graph, config, weights, hidden, layer }, x);
  const pooled = pooling.pooling === 'cls' ? firstState(graph, x) : meanState(graph, x, mask);
  graph.output('embeddings', pooling.normalise ? unitLength(graph, pooled) : pooled);
  return graph.build();
}

/** Word plus position; the type of every token is 0, and its vector is part of the stored positions. */
function embedTokens(graph: GraphBuilder, config: EncoderConfig, weights: WeightsFile, ids: Value): Value {
  const stored = (name: string) => storedConstant(graph, weights, name);
  const zeros = graph.op('Mul', [ids, graph.integers([0])]);
  const ones = graph.op('Add', [zeros, graph.integers([1])]);
  const counted = graph.op('CumSum', [ones, graph.integers([1], [])]);
  const positions = graph.op('Add', [counted, graph.integers([-1])], { name: 'positions' });
  const words = graph.op('Gather', [stored('words'), ids], { name: 'words.picked', attributes: { axis: 0 } });
  const places = graph.op('Gather', [stored('positions.table'), positions], {
    name: 'positions.picked',
    attributes: { axis: 0 },
  });
  return graph.op(
    'LayerNormalization',
    [graph.op('Add', [words, places]), stored('norm.scale'), stored('norm.bias')],
    { name: 'norm', attributes: { axis: -1, epsilon: config.normEpsilon } },
  );
}

interface LayerContext {
  readonly graph: GraphBuilder;
  readonly config: EncoderConfig;
  readonly weights: WeightsFile;
  /** int32 [B, S] */
  readonly hidden: Value;
  readonly layer: number;
}

function encoderLayer({ graph, config, weights, hidden, layer }: LayerContext, x: Value): Value {
  const prefix = `layers.${layer}`;
  const stored = (name: string) => storedConstant(graph, weights, `${prefix}.${name}`);
  const project = (part: EncoderLayerPart, value: Value): Value =>
    graph.op('FusedMatMul', [value, stored(`${part}.weight`)], {
      name: `${prefix}.${part}`,
      attributes: { transB: 1 },
    });
  /** Norm of the product with its bias and what it stands beside. */
  const close = (part: 'o' | 'down', norm: 'attentionNorm' | 'mlpNorm', value: Value, skip: Value): Value =>
    graph.op(
      'SkipLayerNormalization',
      [project(part, value), skip, stored(`${norm}.weight`), stored(`${norm}.bias`), stored(`${part}.bias`)],
      { name: `${prefix}.${norm}`, attributes: { epsilon: config.normEpsilon } },
    );
  const attended = graph.op(
    'MultiHeadAttention',
    [project('q', x), project('k', x), project('v', x), stored('qkv.bias'), hidden],
    { name: `${prefix}.attention`, attributes: { num_heads: config.heads } },
  );
  const middle = close('o', 'attentionNorm', attended, x);
  const active = graph.op('BiasGelu', [project('up', middle), stored('up.bias')], { name: `${prefix}.gelu` });
  return close('down', 'mlpNorm', active, middle);
}

function firstState(graph: GraphBuilder, x: Value): Value {
  return graph.op('Gather', [x, graph.integers([0], [])], { name: 'first', attributes: { axis: 1 } });
}

/** Mean of the states [B, S, D] over the tokens that the mask [B, S] keeps. */
function meanState(graph: GraphBuilder, x: Value, mask: Value): Value {
  const weights = graph.op('Cast', [mask], { name: 'mask.weights', attributes: { to: 1 } });
  const column = graph.op('Reshape', [weights, graph.integers([0, 0, 1])], { name: 'mask.column' });
  const overTokens = { attributes: { keepdims: 0 } };
  const sum = graph.op('ReduceSum', [graph.op('Mul', [x, column]), graph.integers([1])], overTokens);
  const count = graph.op('ReduceSum', [column, graph.integers([1])], overTokens);
  return graph.op('Div', [sum, graph.op('Max', [count, graph.scalar(SMALLEST_LENGTH)])], { name: 'mean' });
}

function unitLength(graph: GraphBuilder, x: Value): Value {
  const length = graph.op('ReduceL2', [x, graph.integers([-1])], { attributes: { keepdims: 1 } });
  return graph.op('Div', [x, graph.op('Max', [length, graph.scalar(SMALLEST_LENGTH)])], { name: 'unit' });
}
