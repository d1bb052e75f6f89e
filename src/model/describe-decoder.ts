// From a model's own settings to a DecoderConfig; what cannot be computed is refused by name.

import { InvalidInputError } from '../errors.js';
import type { TensorInfo } from '../weights/index.js';
import {
  DECODER_ARCHITECTURES,
  type DecoderArchitecture,
  type DecoderConfig,
  type RopeScaling,
} from './decoder-config.js';
import { refuse, type Settings, settingsOf } from './settings.js';

/** Settings of a decoder: a parsed `config.json` (transformers 4 or 5), or the metadata of a GGUF file. */
export type DecoderSource =
  | {
      readonly configJson: object;
      /** Parsed `generation_config.json`; its end tokens count as well. */
      readonly generationConfigJson?: object;
      readonly tensors: ReadonlyMap<string, TensorInfo>;
    }
  | { readonly gguf: ReadonlyMap<string, unknown>; readonly tensors: ReadonlyMap<string, TensorInfo> };

/**
 * Reads what a decoder is.
 * @throws {UnsupportedError} an architecture or option that this version cannot compute, with what it can
 * @throws {InvalidInputError} a setting is missing or of the wrong kind
 */
export function describeDecoder(source: DecoderSource): DecoderConfig {
  const config = 'gguf' in source ? fromGguf(source.gguf, source.tensors) : fromConfigJson(source);
  check(config);
  return config;
}

function architectureOf(name: string, where: string): DecoderArchitecture {
  const found = DECODER_ARCHITECTURES.find((item) => item === name);
  return found ?? refuse(where, 'architecture', name, DECODER_ARCHITECTURES.join(', '));
}

function fromConfigJson(source: Extract<DecoderSource, { configJson: object }>): DecoderConfig {
  const where = 'config.json';
  const settings = settingsOf(new Map(Object.entries(source.configJson)), where);
  const architecture = architectureOf(settings.text('model_type'), where);
  refuseOptions(settings, architecture, where);
  const hiddenSize = settings.count('hidden_size');
  const heads = settings.count('num_attention_heads');
  const generation = settingsOf(
    new Map(Object.entries(source.generationConfigJson ?? {})),
    'generation_config.json',
  );
  return {
    architecture,
    hiddenSize,
    intermediateSize: settings.count('intermediate_size'),
    layers: settings.count('num_hidden_layers'),
    heads,
    kvHeads: settings.count('num_key_value_heads', heads),
    headDim: settings.count('head_dim', architecture === 'qwen3' ? 128 : hiddenSize / heads),
    vocabSize: settings.count('vocab_size'),
    maxPositions: settings.count('max_position_embeddings'),
    normEpsilon: settings.number('rms_norm_eps'),
    ...ropeOf(settings, where),
    tiedHead: settings.flag('tie_word_embeddings', false),
    qkvBias: architecture === 'qwen2',
    qkNorm: architecture === 'qwen3',
    bosTokenId: settings.tokenIds('bos_token_id')[0] ?? null,
    eosTokenIds: [...new Set([...settings.tokenIds('eos_token_id'), ...generation.tokenIds('eos_token_id')])],
  };
}

function refuseOptions(settings: Settings, architecture: DecoderArchitecture, where: string): void {
  const activation = settings.text('hidden_act', 'silu');
  if (activation !== 'silu') refuse(where, 'hidden_act', activation, 'silu');
  for (const key of ['attention_bias', 'mlp_bias'])
    if (settings.flag(key, false)) refuse(where, key, true, 'false');
  if (settings.flag('use_sliding_window', false)) refuse(where, 'use_sliding_window', true, 'false');
  const window = settings.raw('sliding_window');
  if (architecture === 'llama' && window !== undefined) refuse(where, 'sliding_window', window, 'null');
  const kinds = settings.raw('layer_types');
  if (Array.isArray(kinds)) {
    const other = kinds.find((kind) => kind !== 'full_attention');
    if (other !== undefined) refuse(where, 'layer_types', other, 'full_attention');
  }
  const quantised = settings.raw('quantization_config');
  if (quantised !== undefined) refuse(where, 'quantization_config', quantised, 'F32, F16 or BF16 weights');
}

/** transformers 5 keeps everything in `rope_parameters`; 4 has `rope_theta` beside an optional `rope_scaling`. */
function ropeOf(settings: Settings, where: string): Pick<DecoderConfig, 'ropeTheta' | 'ropeScaling'> {
  const section = settings.section('rope_parameters') ?? settings.section('rope_scaling');
  const theta = section?.raw('rope_theta') === undefined ? settings : section;
  const ropeTheta = theta.number('rope_theta', 10_000);
  const partial = section?.raw('partial_rotary_factor') ?? settings.raw('partial_rotary_factor') ?? 1;
  if (partial !== 1) refuse(where, 'partial_rotary_factor', partial, '1');
  return { ropeTheta, ropeScaling: section === null ? { kind: 'none' } : scalingOf(section, where) };
}

function scalingOf(section: Settings, where: string): RopeScaling {
  const kind = section.raw('rope_type') ?? section.raw('type') ?? 'default';
  if (kind === 'default') return { kind: 'none' };
  if (kind !== 'llama3') refuse(where, 'rope type', kind, 'default, llama3');
  return {
    kind: 'llama3',
    factor: section.number('factor'),
    lowFrequencyFactor: section.number('low_freq_factor'),
    highFrequencyFactor: section.number('high_freq_factor'),
    originalPositions: section.count('original_max_position_embeddings'),
  };
}

function fromGguf(
  metadata: ReadonlyMap<string, unknown>,
  tensors: ReadonlyMap<string, TensorInfo>,
): DecoderConfig {
  const where = 'GGUF metadata';
  const settings = settingsOf(metadata, where);
  const architecture = architectureOf(settings.text('general.architecture'), where);
  const key = (name: string) => `${architecture}.${name}`;
  const scaling = settings.text(key('rope.scaling.type'), 'none');
  if (scaling !== 'none') refuse(where, key('rope.scaling.type'), scaling, 'none');
  const window = settings.raw(key('attention.sliding_window'));
  if (window !== undefined && window !== 0) refuse(where, key('attention.sliding_window'), window, 'none');
  if (metadata.has(key('expert_count')) && settings.raw(key('expert_count')) !== 0)
    refuse(where, key('expert_count'), settings.raw(key('expert_count')), '0');
  const hiddenSize = settings.count(key('embedding_length'));
  const heads = settings.count(key('attention.head_count'));
  const headDim = settings.count(key('attention.key_length'), hiddenSize / heads);
  const rotated = settings.count(key('rope.dimension_count'), headDim);
  if (rotated !== headDim) refuse(where, key('rope.dimension_count'), rotated, `the head size ${headDim}`);
  const eos = ['eos', 'eot', 'eom'].flatMap((name) => settings.tokenIds(`tokenizer.ggml.${name}_token_id`));
  return {
    architecture,
    hiddenSize,
    intermediateSize: settings.count(key('feed_forward_length')),
    layers: settings.count(key('block_count')),
    heads,
    kvHeads: settings.count(key('attention.head_count_kv'), heads),
    headDim,
    vocabSize: tensors.get('token_embd.weight')?.shape[0] ?? settings.count(key('vocab_size')),
    maxPositions: settings.count(key('context_length')),
    normEpsilon: decimal(settings.number(key('attention.layer_norm_rms_epsilon'))),
    ropeTheta: settings.number(key('rope.freq_base'), 10_000),
    ropeScaling: { kind: tensors.has('rope_freqs.weight') ? 'stored' : 'none' },
    tiedHead: !tensors.has('output.weight'),
    qkvBias: architecture === 'qwen2',
    qkNorm: architecture === 'qwen3',
    bosTokenId: settings.tokenIds('tokenizer.ggml.bos_token_id')[0] ?? null,
    eosTokenIds: [...new Set(eos)],
  };
}

/** A float32 that was written from a short decimal, as that decimal: 9.999999747378752e-06 is 1e-05. */
function decimal(value: number): number {
  return Number(value.toPrecision(7));
}

function check(config: DecoderConfig): void {
  const { heads, kvHeads, headDim } = config;
  if (heads % kvHeads !== 0)
    throw new InvalidInputError(`${heads} heads cannot share ${kvHeads} key/value heads evenly`);
  if (headDim % 8 !== 0) refuse(config.architecture, 'head size', headDim, 'multiples of 8');
}
