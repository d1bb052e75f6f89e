// A decoder's tensors under one set of names, whatever file they come from.

import { FileFormatError, UnsupportedError } from '../errors.js';
import type { TensorSource } from '../weights/index.js';
import type { DecoderConfig } from './decoder-config.js';

/** Tensors that occur once. `embedding` and `head` are [vocab, hidden], `norm` is [hidden]. */
export type ModelPart = 'embedding' | 'head' | 'norm' | 'ropeFactors';

/** Linear layers of a decoder layer; their weights are [out, in]. */
export type LinearModule = 'q' | 'k' | 'v' | 'o' | 'gate' | 'up' | 'down';

export type LayerPart =
  | LinearModule
  | 'qBias'
  | 'kBias'
  | 'vBias'
  | 'qNorm'
  | 'kNorm'
  | 'attentionNorm'
  | 'mlpNorm';

export const LINEAR_MODULES: readonly LinearModule[] = ['q', 'k', 'v', 'o', 'gate', 'up', 'down'];

export function isLinearModule(part: LayerPart): part is LinearModule {
  return (LINEAR_MODULES as readonly LayerPart[]).includes(part);
}

export interface DecoderWeights {
  readonly config: DecoderConfig;
  /** Row major float32. `head` of a tied model is its embedding. */
  part(part: ModelPart): Float32Array;
  layer(layer: number, part: LayerPart): Float32Array;
}

interface Names {
  readonly model: Readonly<Record<ModelPart, string>>;
  readonly layer: (layer: number) => Readonly<Record<LayerPart, string>>;
}

const SAFETENSORS: Names = {
  model: {
    embedding: 'model.embed_tokens.weight',
    head: 'lm_head.weight',
    norm: 'model.norm.weight',
    ropeFactors: 'rope_freqs.weight',
  },
  layer: (layer) => {
    const prefix = `model.layers.${layer}`;
    return {
      q: `${prefix}.self_attn.q_proj.weight`,
      k: `${prefix}.self_attn.k_proj.weight`,
      v: `${prefix}.self_attn.v_proj.weight`,
      o: `${prefix}.self_attn.o_proj.weight`,
      gate: `${prefix}.mlp.gate_proj.weight`,
      up: `${prefix}.mlp.up_proj.weight`,
      down: `${prefix}.mlp.down_proj.weight`,
      qBias: `${prefix}.self_attn.q_proj.bias`,
      kBias: `${prefix}.self_attn.k_proj.bias`,
      vBias: `${prefix}.self_attn.v_proj.bias`,
      qNorm: `${prefix}.self_attn.q_norm.weight`,
      kNorm: `${prefix}.self_attn.k_norm.weight`,
      attentionNorm: `${prefix}.input_layernorm.weight`,
      mlpNorm: `${prefix}.post_attention_layernorm.weight`,
    };
  },
};

const GGUF: Names = {
  model: {
    embedding: 'token_embd.weight',
    head: 'output.weight',
    norm: 'output_norm.weight',
    ropeFactors: 'rope_freqs.weight',
  },
  layer: (layer) => {
    const prefix = `blk.${layer}`;
    return {
      q: `${prefix}.attn_q.weight`,
      k: `${prefix}.attn_k.weight`,
      v: `${prefix}.attn_v.weight`,
      o: `${prefix}.attn_output.weight`,
      gate: `${prefix}.ffn_gate.weight`,
      up: `${prefix}.ffn_up.weight`,
      down: `${prefix}.ffn_down.weight`,
      qBias: `${prefix}.attn_q.bias`,
      kBias: `${prefix}.attn_k.bias`,
      vBias: `${prefix}.attn_v.bias`,
      qNorm: `${prefix}.attn_q_norm.weight`,
      kNorm: `${prefix}.attn_k_norm.weight`,
      attentionNorm: `${prefix}.attn_norm.weight`,
      mlpNorm: `${prefix}.ffn_norm.weight`,
    };
  },
};

/** Name of a tensor in the hub's safetensors files. */
export const hubModelTensor = (part: ModelPart): string => SAFETENSORS.model[part];

/** Name of a layer's tensor in the hub's safetensors files. */
export const hubLayerTensor = (layer: number, part: LayerPart): string => SAFETENSORS.layer(layer)[part];

/** [out, in] of each linear layer. */
export function linearShape(config: DecoderConfig, module: LinearModule): readonly [number, number] {
  const { hiddenSize, intermediateSize, heads, kvHeads, headDim } = config;
  switch (module) {
    case 'q':
      return [heads * headDim, hiddenSize];
    case 'k':
    case 'v':
      return [kvHeads * headDim, hiddenSize];
    case 'o':
      return [hiddenSize, heads * headDim];
    case 'gate':
    case 'up':
      return [intermediateSize, hiddenSize];
    case 'down':
      return [hiddenSize, intermediateSize];
  }
}

function shapeOf(config: DecoderConfig, part: ModelPart | LayerPart): readonly number[] {
  switch (part) {
    case 'embedding':
    case 'head':
      return [config.vocabSize, config.hiddenSize];
    case 'norm':
    case 'attentionNorm':
    case 'mlpNorm':
      return [config.hiddenSize];
    case 'ropeFactors':
      return [config.headDim / 2];
    case 'qNorm':
    case 'kNorm':
      return [config.headDim];
    case 'qBias':
      return [config.heads * config.headDim];
    case 'kBias':
    case 'vBias':
      return [config.kvHeads * config.headDim];
    default:
      return linearShape(config, part);
  }
}

/**
 * Opens a decoder's tensors by canonical names. Missing tensors and wrong shapes are found at once, values are
 * read when asked for.
 * @throws {FileFormatError} a tensor is missing or has another shape than the config says
 * @throws {UnsupportedError} a bias that this architecture does not have
 */
export function decoderWeights(config: DecoderConfig, source: TensorSource): DecoderWeights {
  const names = source.format === 'gguf' ? GGUF : SAFETENSORS;
  const check = (name: string, part: ModelPart | LayerPart): void => {
    const expected = shapeOf(config, part).join(',');
    const found = source.tensors.get(name);
    if (found === undefined) throw new FileFormatError(`tensor "${name}" is missing; expected [${expected}]`);
    if (found.shape.join(',') !== expected)
      throw new FileFormatError(
        `${found.file}: tensor "${name}" is [${found.shape.join(',')}], the config says [${expected}]`,
      );
  };
  const modelPart = (part: ModelPart): ModelPart => (part === 'head' && config.tiedHead ? 'embedding' : part);
  for (const part of requiredParts(config)) check(names.model[part], part);
  for (let layer = 0; layer < config.layers; layer++)
    for (const part of requiredLayerParts(config)) check(names.layer(layer)[part], part);
  refuseOtherBiases(config, source, names);
  return {
    config,
    part: (part) => source.readFloat32(names.model[modelPart(part)]),
    layer: (layer, part) => {
      const values = source.readFloat32(names.layer(layer)[part]);
      const permuted = source.format === 'gguf' && config.architecture === 'llama';
      return permuted && (part === 'q' || part === 'k') ? pairsToHalves(values, config) : values;
    },
  };
}

/** Tensors that nothing reads are often harmless; a bias never is. */
function refuseOtherBiases(config: DecoderConfig, source: TensorSource, names: Names): void {
  const read = new Set<string>();
  for (let layer = 0; layer < config.layers; layer++)
    for (const part of requiredLayerParts(config)) read.add(names.layer(layer)[part]);
  for (const name of source.tensors.keys())
    if (name.endsWith('.bias') && !read.has(name))
      throw new UnsupportedError(`${config.architecture}: tensor "${name}": this bias is not supported`);
}

function requiredParts(config: DecoderConfig): readonly ModelPart[] {
  const parts: ModelPart[] = ['embedding', 'norm'];
  if (!config.tiedHead) parts.push('head');
  if (config.ropeScaling.kind === 'stored') parts.push('ropeFactors');
  return parts;
}

function requiredLayerParts(config: DecoderConfig): readonly LayerPart[] {
  const parts: LayerPart[] = [...LINEAR_MODULES, 'attentionNorm', 'mlpNorm'];
  if (config.qkvBias) parts.push('qBias', 'kBias', 'vBias');
  if (config.qkNorm) parts.push('qNorm', 'kNorm');
  return parts;
}

/**
 * GGUF's Llama files store the rows of each head of q and k as rotated pairs side by side (0, H/2, 1, H/2 + 1, ...);
 * the graph rotates row i with row i + H/2. Turns the first order into the second.
 */
function pairsToHalves(values: Float32Array, config: DecoderConfig): Float32Array {
  const { headDim, hiddenSize } = config;
  const result = new Float32Array(values.length);
  const half = headDim / 2;
  for (let row = 0; row < values.length / hiddenSize; row++) {
    const head = row - (row % headDim);
    const inHead = row % headDim;
    const target = head + (inHead % 2) * half + (inHead >> 1);
    result.set(values.subarray(row * hiddenSize, (row + 1) * hiddenSize), target * hiddenSize);
  }
  return result;
}
