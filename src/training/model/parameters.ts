// What is trained: tensors with their gradients, and where the stages find them.

import { InvalidInputError } from '../../errors.js';
import {
  type Adapter,
  type DecoderConfig,
  type DecoderWeights,
  hubLayerTensor,
  hubModelTensor,
  LARGEST_ADAPTER_WEIGHT,
  type LayerPart,
  LINEAR_MODULES,
  type LinearModule,
  linearShape,
  type ModelPart,
  modulePath,
} from '../../model/index.js';
import type { TensorView } from '../../runtime/index.js';
import { derivedSeed } from '../../util/derived-seed.js';
import { randomNumbers } from '../../util/random.js';
import type { Parameter } from '../training-model.js';

/** Which linear layers get adapters, and how they begin. */
export type LoraSettings =
  | {
      readonly kind: 'lora';
      readonly rank: number;
      readonly alpha: number;
      /** All seven when absent. */
      readonly modules?: readonly LinearModule[];
      /** A from a uniform distribution, B zero. */
      readonly seed: number;
    }
  /** Goes on from an adapter, with its ranks and scales. */
  | { readonly kind: 'lora'; readonly adapter: Adapter };

export type TrainableWeights = LoraSettings | { readonly kind: 'all' };

/** One adapter of one linear layer. */
export interface LoraModule {
  readonly module: LinearModule;
  readonly rank: number;
  readonly scale: number;
  readonly a: Parameter;
  readonly b: Parameter;
}

export interface LayerParameters {
  readonly lora: readonly LoraModule[];
  /** Whole weights by part; null for LoRA. */
  readonly weights: ReadonlyMap<LayerPart, Parameter> | null;
}

export interface ParameterSet {
  readonly all: readonly Parameter[];
  readonly layers: readonly LayerParameters[];
  /** Weights that occur once; null for LoRA. */
  readonly ends: ReadonlyMap<ModelPart, Parameter> | null;
  readonly valueHead: { readonly weight: Parameter; readonly bias: Parameter } | null;
}

function parameter(name: string, shape: readonly number[], values?: Float32Array): Parameter {
  const count = shape.reduce((product, size) => product * size, 1);
  return { name, shape, values: values ?? new Float32Array(count), gradient: new Float32Array(count) };
}

/** A parameter's values or gradient as the stages bind it. */
export function viewOf({ shape }: Parameter, data: Float32Array): TensorView {
  return { type: 'float32', shape, data };
}

interface ModuleStart {
  readonly module: LinearModule;
  readonly rank: number;
  readonly scale: number;
  readonly a: Float32Array;
  readonly b: Float32Array;
}

export function createParameters(
  weights: DecoderWeights,
  trainable: TrainableWeights,
  head:
    | { readonly kind: 'policy' }
    | { readonly kind: 'value'; readonly weight?: Float32Array; readonly bias?: number },
): ParameterSet {
  const { config } = weights;
  const layers = Array.from({ length: config.layers }, (_, layer) =>
    trainable.kind === 'all'
      ? wholeLayer(weights, layer)
      : loraLayer(config, layer, startOf(config, layer, trainable)),
  );
  const ends = trainable.kind === 'all' ? wholeEnds(weights, head.kind) : null;
  const valueHead =
    head.kind === 'value'
      ? {
          weight: parameter('value_head.weight', [1, config.hiddenSize], head.weight?.slice()),
          bias: parameter('value_head.bias', [1], Float32Array.of(head.bias ?? 0)),
        }
      : null;
  const all = [
    ...(ends?.get('embedding') ? [ends.get('embedding')!] : []),
    ...layers.flatMap((layer) => [
      ...(layer.weights?.values() ?? []),
      ...layer.lora.flatMap(({ a, b }) => [a, b]),
    ]),
    ...[...(ends ?? [])].filter(([part]) => part !== 'embedding').map(([, end]) => end),
    ...(valueHead ? [valueHead.weight, valueHead.bias] : []),
  ];
  return { all, layers, ends, valueHead };
}

function loraLayer(config: DecoderConfig, layer: number, modules: readonly ModuleStart[]): LayerParameters {
  const lora = modules.map(({ module, rank, scale, a, b }) => {
    const [out, inner] = linearShape(config, module);
    const name = `base_model.model.model.${modulePath(layer, module)}`;
    return {
      module,
      rank,
      scale,
      a: { ...parameter(`${name}.lora_A.weight`, [rank, inner], a), largest: LARGEST_ADAPTER_WEIGHT },
      b: { ...parameter(`${name}.lora_B.weight`, [out, rank], b), largest: LARGEST_ADAPTER_WEIGHT / scale },
    };
  });
  return { lora, weights: null };
}

/** PEFT's start: A uniform in +-1 / sqrt(in) (Kaiming with a = sqrt 5), B zero. */
function startOf(config: DecoderConfig, layer: number, settings: LoraSettings): readonly ModuleStart[] {
  if ('adapter' in settings)
    return settings.adapter.modules
      .filter((item) => item.layer === layer)
      .map(({ module, rank, scale, a, b }) => ({ module, rank, scale, a: a.slice(), b: b.slice() }));
  const { rank, alpha, seed, modules = LINEAR_MODULES } = settings;
  if (!(Number.isInteger(rank) && rank > 0))
    throw new InvalidInputError(`rank ${rank} must be a positive integer`, 'rank');
  return LINEAR_MODULES.filter((module) => modules.includes(module)).map((module) => {
    const [out, inner] = linearShape(config, module);
    const next = randomNumbers(derivedSeed(seed, 'lora', layer, module));
    const bound = 1 / Math.sqrt(inner);
    const a = Float32Array.from({ length: rank * inner }, () => (2 * next() - 1) * bound);
    return { module, rank, scale: alpha / rank, a, b: new Float32Array(out * rank) };
  });
}

function wholeLayer(weights: DecoderWeights, layer: number): LayerParameters {
  const { config } = weights;
  const { headDim, hiddenSize } = config;
  const parts = new Map<LayerPart, Parameter>();
  const add = (part: LayerPart, shape: readonly number[]): void => {
    parts.set(part, parameter(hubLayerTensor(layer, part), shape, weights.layer(layer, part).slice()));
  };
  add('attentionNorm', [hiddenSize]);
  for (const module of LINEAR_MODULES) {
    add(module, linearShape(config, module));
    if (module === 'o') add('mlpNorm', [hiddenSize]);
  }
  if (config.qkvBias)
    for (const [part, module] of [
      ['qBias', 'q'],
      ['kBias', 'k'],
      ['vBias', 'v'],
    ] as const)
      add(part, [linearShape(config, module)[0]]);
  if (config.qkNorm) for (const part of ['qNorm', 'kNorm'] as const) add(part, [headDim]);
  return { lora: [], weights: parts };
}

function wholeEnds(weights: DecoderWeights, head: 'policy' | 'value'): ReadonlyMap<ModelPart, Parameter> {
  const { vocabSize, hiddenSize, tiedHead } = weights.config;
  const ends = new Map<ModelPart, Parameter>();
  const add = (part: ModelPart, shape: readonly number[]): void => {
    ends.set(part, parameter(hubModelTensor(part), shape, weights.part(part).slice()));
  };
  add('embedding', [vocabSize, hiddenSize]);
  add('norm', [hiddenSize]);
  if (!tiedHead && head === 'policy') add('head', [vocabSize, hiddenSize]);
  return ends;
}

/** The same values, with gradients of their own. */
export function withOwnGradients({ all, layers, ends, valueHead }: ParameterSet): ParameterSet {
  const copies = new Map(
    all.map((item) => [item, { ...item, gradient: new Float32Array(item.gradient.length) }]),
  );
  const own = (item: Parameter): Parameter => copies.get(item) as Parameter;
  const mapped = <K>(items: ReadonlyMap<K, Parameter> | null) =>
    items && new Map([...items].map(([key, item]) => [key, own(item)]));
  return {
    all: all.map(own),
    layers: layers.map(({ lora, weights }) => ({
      lora: lora.map((module) => ({ ...module, a: own(module.a), b: own(module.b) })),
      weights: mapped(weights),
    })),
    ends: mapped(ends),
    valueHead: valueHead && { weight: own(valueHead.weight), bias: own(valueHead.bias) },
  };
}
