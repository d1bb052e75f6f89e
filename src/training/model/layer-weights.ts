// A layer's weights as its stages take them: the base, with the adapter's product added where there is one.

import {
  type DecoderConfig,
  type DecoderWeights,
  type LayerPart,
  LINEAR_MODULES,
  type LinearModule,
  linearShape,
  type Trained,
} from '../../model/index.js';
import type { TensorView } from '../../runtime/index.js';
import type { QuantisedMatrix } from '../../weights/index.js';
import { type Base, floatBase, type MergeStage, quantisedBase } from './merge-stage.js';
import { type LayerParameters, type LoraModule, viewOf } from './parameters.js';
import type { Views } from './stage-session.js';

const SMALL_PARTS: Readonly<Record<string, LayerPart>> = {
  'attentionNorm.scale': 'attentionNorm',
  'mlpNorm.scale': 'mlpNorm',
  'qNorm.scale': 'qNorm',
  'kNorm.scale': 'kNorm',
  'q.bias': 'qBias',
  'k.bias': 'kBias',
  'v.bias': 'vBias',
};

/** An adapter's values as they were when they were last added. */
interface Merged {
  readonly lora: LoraModule;
  readonly base: Base;
  readonly target: TensorView;
  readonly a: Float32Array;
  readonly b: Float32Array;
}

export interface LayerSource {
  /** What is computed with. */
  readonly values: DecoderWeights;
  /** The same in 8-bit blocks where these stand for it, else null. */
  quantised(layer: number, module: LinearModule): QuantisedMatrix | null;
}

/** What the stages of a layer take and give beside activations. */
export interface LayerTensors {
  /** Weights for all phases. */
  readonly inputs: Views;
  /** What the backward phases take besides: adapters, and sums of gradients. */
  readonly gradientInputs: Views;
  /** Where gradients go: the memory of the sums. */
  readonly gradientOutputs: Views;
}

export class LayerWeights {
  readonly trained: Trained;
  readonly #inputs: Views;
  readonly #merged: Merged[] = [];

  constructor(
    { values, quantised }: LayerSource,
    private readonly layer: number,
    parameters: LayerParameters,
  ) {
    const { config } = values;
    const inputs: Record<string, TensorView> = {};
    for (const [name, shape, part] of layerTensors(config)) {
      const lora = parameters.lora.find(({ module }) => module === part);
      const matrix = lora === undefined ? null : quantised(layer, lora.module);
      const whole = (): TensorView => ({
        type: 'float32',
        shape,
        data: parameters.weights?.get(part)?.values ?? values.layer(layer, part),
      });
      inputs[name] =
        lora === undefined
          ? whole()
          : this.#merge(lora, shape, matrix === null ? floatBase(whole()) : quantisedBase(matrix));
    }
    this.#inputs = inputs;
    this.trained =
      parameters.weights !== null
        ? { kind: 'all' }
        : {
            kind: 'lora',
            ranks: Object.fromEntries(parameters.lora.map(({ module, rank }) => [module, rank])),
          };
  }

  /** With the gradients of `parameters`, which have the values of this layer's. */
  tensors(parameters: LayerParameters): LayerTensors {
    const gradients = gradientViews(parameters);
    return {
      inputs: this.#inputs,
      gradientInputs: { ...adapterViews(parameters), ...suffixed(gradients, 'sum') },
      gradientOutputs: suffixed(gradients, 'grad'),
    };
  }

  /** Adds adapters to their base where their values changed since the last time. */
  async refresh(stage: MergeStage): Promise<void> {
    for (const { lora, base, target, a, b } of this.#merged) {
      if (equal(lora.a.values, a) && equal(lora.b.values, b)) continue;
      await stage.merge(`${this.layer}.${lora.module}`, lora, base, target);
      a.set(lora.a.values);
      b.set(lora.b.values);
    }
  }

  #merge(lora: LoraModule, shape: readonly number[], base: Base): TensorView {
    const count = shape.reduce((product, size) => product * size, 1);
    const target: TensorView = { type: 'float32', shape, data: new Float32Array(count) };
    // NaN equals nothing: the first refresh adds.
    const never = (values: Float32Array): Float32Array => new Float32Array(values.length).fill(Number.NaN);
    this.#merged.push({ lora, base, target, a: never(lora.a.values), b: never(lora.b.values) });
    return target;
  }
}

function equal(a: Float32Array, b: Float32Array): boolean {
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

/** Name in the stages, shape and part of each tensor of a layer. */
function layerTensors(config: DecoderConfig): readonly (readonly [string, readonly number[], LayerPart])[] {
  const small = Object.entries(SMALL_PARTS).filter(
    ([name]) => (config.qkvBias || !name.endsWith('bias')) && (config.qkNorm || !/^[qk]Norm/.test(name)),
  );
  const sizeOf = (part: LayerPart): number => {
    if (part === 'qNorm' || part === 'kNorm') return config.headDim;
    if (part.endsWith('Bias')) return linearShape(config, part[0] as LinearModule)[0];
    return config.hiddenSize;
  };
  return [
    ...LINEAR_MODULES.map((module) => [`${module}.weight`, linearShape(config, module), module] as const),
    ...small.map(([name, part]) => [name, [sizeOf(part)], part] as const),
  ];
}

const nameOf = (part: LayerPart): string =>
  Object.entries(SMALL_PARTS).find(([, found]) => found === part)?.[0] ?? `${part}.weight`;

function gradientViews({ lora, weights }: LayerParameters): Views {
  const whole = [...(weights ?? [])].map(([part, item]) => [nameOf(part), viewOf(item, item.gradient)]);
  const adapters = lora.flatMap(({ module, a, b }) => [
    [`${module}.a`, viewOf(a, a.gradient)],
    [`${module}.b`, viewOf(b, b.gradient)],
  ]);
  return Object.fromEntries([...whole, ...adapters]);
}

function adapterViews({ lora }: LayerParameters): Views {
  return Object.fromEntries(
    lora.flatMap(({ module, scale, a, b }) => [
      [`${module}.a`, viewOf(a, a.values)],
      [`${module}.b`, viewOf(b, b.values)],
      [`${module}.loraScale`, { type: 'float32', shape: [], data: Float32Array.of(scale) } as TensorView],
    ]),
  );
}

export function suffixed(views: Views, suffix: string): Views {
  return Object.fromEntries(Object.entries(views).map(([name, view]) => [`${name}.${suffix}`, view]));
}
