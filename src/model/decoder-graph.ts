// The step graph of a decoder: one graph for prefill, decode and scoring, with or without adapters.

import { type Graph, GraphBuilder, type Value } from '../graph/index.js';
import { ADAPTER_GROUPS, type AdapterGroup, groupShape } from './adapter-groups.js';
import type { DecoderConfig } from './decoder-config.js';
import { embed, linear, rmsNorm } from './layers.js';
import { storedConstant, type WeightsFile } from './weights-file.js';

export interface DecoderGraphOptions {
  /** Adds the inputs of adapters. */
  readonly adapters: boolean;
  /** Element type of keys and values. */
  readonly cache: CacheType;
}

export type CacheType = 'float32' | 'int8';

const KINDS = ['key', 'value'] as const;

/**
 * A score next to which any other is infinitely likely. onnxruntime walks an int8 cache in tiles unless attention has such a
 * sink, and for single tokens tiles only cost: see docs/engine.md.
 */
const NO_SINK = -1e30;

const INT8_CACHE = { kv_cache_bit_width: 8, k_quant_type: 'PER_CHANNEL', v_quant_type: 'PER_CHANNEL' };

/** What every layer needs. */
interface Context {
  readonly graph: GraphBuilder;
  readonly config: DecoderConfig;
  readonly weights: WeightsFile;
  readonly seqlens: Value;
  readonly totalLength: Value;
  /** int64 [B, S], where attention cannot rotate by itself; else null. */
  readonly positions: Value | null;
  /** f32 [B, 1, R] for each group; null without adapters. */
  readonly masks: Readonly<Record<AdapterGroup, Value>> | null;
  readonly cache: CacheType;
  /** f32 [heads] for an int8 cache, see `NO_SINK`. */
  readonly sink: Value | null;
}

/**
 * Builds the step graph.
 *
 * Inputs: `input_ids` int64 [B, S]; `seqlens_k` int32 [B], tokens of each row after the step, minus 1;
 * `total_sequence_length` int32 [1], the largest of them, plus 1; `selected_rows` int64 [N], positions of the flattened
 * [B * S] whose logits are wanted; `past_key.<l>`, `past_value.<l>` f32 [B, kvHeads, T, headDim].
 * With adapters for each group g in qkv, o, gate_up, down: `lora_mask.<g>` f32 [B, 1, R_g], and for each layer l
 * `lora.<l>.<g>.a` f32 [in, R_g] and `lora.<l>.<g>.b` f32 [R_g, out].
 * With an int8 cache keys and values are int8, and `key_step.<l>`, `value_step.<l>` f32 [kvHeads * headDim] say what a step
 * of each channel is worth.
 * Outputs: `logits` f32 [N, V], `logsumexp` f32 [N] of them, `hidden` f32 [N, D] after the last norm, and
 * `present_key.<l>`, `present_value.<l>`, which may be bound to the memory of the past ones.
 *
 * Steps with S > 1 take one row where it has a past, and several rows, padded on the right, where none has one;
 * with S = 1 rows may have any lengths.
 */
export function decoderGraph(
  config: DecoderConfig,
  weights: WeightsFile,
  { adapters, cache }: DecoderGraphOptions,
): Graph {
  const graph = new GraphBuilder(`${config.architecture} step${adapters ? ' with adapters' : ''}`);
  const ids = graph.input('input_ids', 'int64', ['B', 'S']);
  const seqlens = graph.input('seqlens_k', 'int32', ['B']);
  const totalLength = graph.input('total_sequence_length', 'int32', [1]);
  const selected = graph.input('selected_rows', 'int64', ['N']);
  const context: Context = {
    graph,
    config,
    weights,
    seqlens,
    totalLength,
    positions: rotatesInside(config) ? null : positionsOf(graph, ids, seqlens),
    masks: adapters ? maskInputs(graph) : null,
    cache,
    sink:
      cache === 'int8'
        ? graph.constant('sink', new Float32Array(config.heads).fill(NO_SINK), [config.heads])
        : null,
  };
  let x = embed(graph, weights, ids);
  for (let layer = 0; layer < config.layers; layer++) x = decoderLayer(context, layer, x);

  const rows = graph.op('Reshape', [x, graph.integers([-1, config.hiddenSize])], { name: 'rows' });
  const picked = graph.op('Gather', [rows, selected], { name: 'picked', attributes: { axis: 0 } });
  const hidden = rmsNorm(graph, weights, 'norm', picked, config.normEpsilon);
  const logits = linear(graph, weights, 'head', hidden);
  graph.output('logits', logits);
  graph.output('logsumexp', logSumExp(graph, logits));
  graph.output('hidden', hidden);
  return graph.build();
}

function decoderLayer(context: Context, layer: number, x: Value): Value {
  const { graph, config, weights } = context;
  const prefix = `layers.${layer}`;
  const norm = (name: string, value: Value) =>
    rmsNorm(graph, weights, `${prefix}.${name}`, value, config.normEpsilon);
  const attended = attention(context, layer, norm('attentionNorm', x));
  const middle = graph.op('Add', [x, adapted(context, layer, 'o', attended)], { name: `${prefix}.middle` });
  const fed = feedForward(context, layer, norm('mlpNorm', middle));
  return graph.op('Add', [middle, fed], { name: `${prefix}.out` });
}

function attention(context: Context, layer: number, x: Value): Value {
  const { graph, config, weights, seqlens, totalLength, positions, cache, sink } = context;
  const { heads, kvHeads, headDim } = config;
  const cacheShape = ['B', kvHeads, 'T', headDim];
  const past = KINDS.map((kind) => graph.input(`past_${kind}.${layer}`, cache, cacheShape));
  const qkv = adapted(context, layer, 'qkv', x);
  const packed = !config.qkNorm && positions === null;
  const query = packed ? [qkv, null, null] : separate(context, layer, qkv);
  const tables = ['rope.cosines', 'rope.sines'].map((name) => storedConstant(graph, weights, name));
  const rotation = positions === null ? tables : [null, null];
  const steps = KINDS.map((kind) =>
    cache === 'int8' ? graph.input(`${kind}_step.${layer}`, 'float32', [kvHeads * headDim]) : null,
  );
  const inputs = [...query, ...past, seqlens, totalLength, ...rotation, null, null, sink, ...steps];
  while (inputs.at(-1) === null) inputs.pop();
  const [attended, key, value] = graph.ops('GroupQueryAttention', inputs, {
    name: `layers.${layer}.attention`,
    attributes: {
      num_heads: heads,
      kv_num_heads: kvHeads,
      do_rotary: positions === null ? 1 : 0,
      ...(cache === 'int8' ? INT8_CACHE : {}),
    },
  }) as [Value, Value, Value];
  graph.output(`present_key.${layer}`, key);
  graph.output(`present_value.${layer}`, value);
  return attended;
}

/** Query, key and value apart: normalised per head and rotated where attention does not do it. */
function separate(context: Context, layer: number, qkv: Value): readonly Value[] {
  const { graph, config, weights, positions } = context;
  const { heads, kvHeads, headDim } = config;
  const prefix = `layers.${layer}`;
  const sizes = [heads, kvHeads, kvHeads].map((count) => count * headDim);
  const [query, key, value] = graph.ops('Split', [qkv, graph.integers(sizes)], {
    name: `${prefix}.split`,
    attributes: { axis: -1 },
  }) as [Value, Value, Value];
  const prepare = (part: 'q' | 'k', x: Value, count: number): Value => {
    const name = `${prefix}.${part}Norm`;
    let y = x;
    if (config.qkNorm) {
      const perHead = graph.op('Reshape', [x, graph.integers([0, 0, count, headDim])], {
        name: `${name}.heads`,
      });
      const normed = rmsNorm(graph, weights, name, perHead, config.normEpsilon);
      y = graph.op('Reshape', [normed, graph.integers([0, 0, count * headDim])], { name: `${name}.joined` });
    }
    if (positions === null) return y;
    const tables = ['rope.cosines', 'rope.sines'].map((table) => storedConstant(graph, weights, table));
    return graph.op('RotaryEmbedding', [y, positions, ...tables], {
      name: `${prefix}.${part}Rotated`,
      attributes: { num_heads: count },
    });
  };
  return [prepare('q', query, heads), prepare('k', key, kvHeads), value];
}

/** down(silu(gate(x)) * up(x)), gate and up being one product. */
function feedForward(context: Context, layer: number, x: Value): Value {
  const { graph, config } = context;
  const prefix = `layers.${layer}`;
  const sizes = graph.integers([config.intermediateSize, config.intermediateSize]);
  const [gate, up] = graph.ops('Split', [adapted(context, layer, 'gate_up', x), sizes], {
    name: `${prefix}.gate`,
    attributes: { axis: -1 },
  }) as [Value, Value];
  const sigmoid = graph.op('Sigmoid', [gate], { name: `${prefix}.sigmoid` });
  const silu = graph.op('Mul', [gate, sigmoid], { name: `${prefix}.silu` });
  const gated = graph.op('Mul', [silu, up], { name: `${prefix}.gated` });
  return adapted(context, layer, 'down', gated);
}

/** A fused linear layer plus, with adapters, ((x A) * mask) B. */
function adapted(context: Context, layer: number, group: AdapterGroup, x: Value): Value {
  const { graph, config, weights, masks } = context;
  const name = `layers.${layer}.${group}`;
  const base = linear(graph, weights, name, x);
  if (masks === null) return base;
  const { inputs, outputs } = groupShape(config, group);
  const rank = rankSymbol(group);
  const a = graph.input(`lora.${layer}.${group}.a`, 'float32', [inputs, rank]);
  const b = graph.input(`lora.${layer}.${group}.b`, 'float32', [rank, outputs]);
  const inner = graph.op('MatMul', [x, a], { name: `${name}.lora.inner` });
  const masked = graph.op('Mul', [inner, masks[group]], { name: `${name}.lora.masked` });
  const outer = graph.op('MatMul', [masked, b], { name: `${name}.lora.outer` });
  return graph.op('Add', [base, outer], { name: `${name}.adapted` });
}

function maskInputs(graph: GraphBuilder): Readonly<Record<AdapterGroup, Value>> {
  const entries = ADAPTER_GROUPS.map((group) => [
    group,
    graph.input(`lora_mask.${group}`, 'float32', ['B', 1, rankSymbol(group)]),
  ]);
  return Object.fromEntries(entries) as Record<AdapterGroup, Value>;
}

function rankSymbol(group: AdapterGroup): string {
  return `R_${group}`;
}

/**
 * log(sum(exp(logits))) of each row, as what LogSoftmax takes from a logit: it runs several times faster than
 * ReduceLogSumExp, and its partial sums lose less.
 */
function logSumExp(graph: GraphBuilder, logits: Value): Value {
  const normalised = graph.op('LogSoftmax', [logits], { name: 'logprobs', attributes: { axis: -1 } });
  const first = (value: Value): Value =>
    graph.op('Gather', [value, graph.integers([0], [])], { attributes: { axis: 1 } });
  return graph.op('Sub', [first(logits), first(normalised)], { name: 'logsumexp' });
}

/** GroupQueryAttention rotates heads whose size is a multiple of 16 only. */
function rotatesInside(config: DecoderConfig): boolean {
  return config.headDim % 16 === 0;
}

/** Positions [B, S] of the tokens of a step: 0 .. S - 1 plus the length of each row's past. */
function positionsOf(graph: GraphBuilder, ids: Value, seqlens: Value): Value {
  const one = graph.integers([1]);
  const zero = graph.integers([0]);
  const ones = graph.op('Add', [graph.op('Mul', [ids, zero]), one]);
  const counted = graph.op('CumSum', [ones, graph.integers([1], [])], { name: 'positions.counted' });
  const tokens = graph.op('Gather', [counted, graph.integers([-1])], {
    name: 'positions.tokens',
    attributes: { axis: 1 },
  });
  const last = graph.op('Cast', [seqlens], { name: 'positions.last', attributes: { to: 7 } });
  const lastColumn = graph.op('Reshape', [last, graph.integers([-1, 1])], { name: 'positions.column' });
  // A row padded on the right is shorter than S and has no past.
  const before = graph.op('Max', [graph.op('Sub', [lastColumn, tokens]), graph.integers([-1])]);
  return graph.op('Add', [counted, before], { name: 'positions' });
}
