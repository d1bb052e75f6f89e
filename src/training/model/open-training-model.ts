import {
  type DecoderWeights,
  type GraphPrecision,
  quantisedLinear,
  quantisedValues,
  ropeTables,
  type Trained,
} from '../../model/index.js';
import type { OnnxRuntime } from '../../runtime/index.js';
import type { TrainingModel } from '../training-model.js';
import { HeadRunner, type HeadWeights } from './head-runner.js';
import { LayerRunner } from './layer-runner.js';
import { type LayerSource, LayerWeights, suffixed } from './layer-weights.js';
import { LayeredModel } from './layered-model.js';
import { MergeStage } from './merge-stage.js';
import { createParameters, type ParameterSet, type TrainableWeights, viewOf } from './parameters.js';
import { CancelCell, type StageOptions, type Views } from './stage-session.js';
import { Stages } from './stages.js';
import { Workspace } from './workspace.js';

export interface TrainingModelOptions {
  readonly runtime: OnnxRuntime;
  readonly weights: DecoderWeights;
  /** Whose values are trained on: those that the engine's graphs of this precision stand for. Default `q8`. */
  readonly precision?: GraphPrecision;
  readonly trainable: TrainableWeights;
  /** Default `policy`. A value head begins with zeros where no values are given. */
  readonly head?: HeadSettings;
  readonly threads: number;
  /** Whether threads spin while they wait. Default true; false where other sessions use the cores. */
  readonly spinning?: boolean;
  /** Bytes for activations that are kept for the backward run; layers beyond it are computed again. Default: no limit. */
  readonly activationBytes?: number;
  /** An int32 of shared memory: whoever stores 1 there ends the running call, as `terminate` does. */
  readonly cancelCell?: Int32Array;
}

export type HeadSettings =
  | { readonly kind: 'policy' }
  | {
      readonly kind: 'value';
      /** [hidden] */
      readonly weight?: Float32Array;
      readonly bias?: number;
    };

/**
 * Opens a model for training. Its weights are read at once; graphs are opened when they are first needed.
 * @throws {InvalidInputError} a rank or module that cannot be
 */
export async function openTrainingModel(options: TrainingModelOptions): Promise<TrainingModel> {
  const { runtime, threads, spinning = true, head = { kind: 'policy' }, trainable } = options;
  const precision = options.precision ?? 'q8';
  const weights = quantisedValues(options.weights, precision);
  const { config } = weights;
  const cancel = new CancelCell(options.cancelCell);
  const stageOptions: StageOptions = { runtime, threads, spinning, cancel };
  const parameters = createParameters(weights, trainable, head);
  const source: LayerSource = {
    values: weights,
    quantised: (layer, module) => quantisedLinear(options.weights, precision, layer, module),
  };
  const layerWeights = parameters.layers.map((own, layer) => new LayerWeights(source, layer, own));
  const trained: Trained = trainable.kind === 'all' ? { kind: 'all' } : { kind: 'lora', ranks: {} };
  const stages = new Stages(config, stageOptions, trained, head.kind);
  const lowest = trainable.kind === 'all' ? -1 : lowestTrained(parameters);
  const layers = layerWeights.map((own, layer) => {
    const form = { trained: own.trained, inputGradient: layer > lowest };
    return new LayerRunner(config, layer, own, stages.layer(form), layer === config.layers - 1);
  });
  const workspace = new Workspace();
  const ends = headWeights(weights, parameters, head.kind);
  const merge = new MergeStage(stageOptions);
  return new LayeredModel({
    config,
    parameters,
    layers,
    lowest: Math.max(lowest, 0),
    head: new HeadRunner(stages.head, stages.direction, ends.head, workspace, head.kind),
    embedding: ends.embedding,
    embeddingGradient: parameters.ends?.get('embedding')?.gradient ?? null,
    rope: ropeOf(weights),
    workspace,
    activationBytes: options.activationBytes ?? Number.POSITIVE_INFINITY,
    cancel,
    async refresh() {
      for (const own of layerWeights) await own.refresh(merge);
    },
    close() {
      stages.close();
      merge.close();
    },
  });
}

/** The first layer in which something is trained; the number of layers where only the head is. */
function lowestTrained({ layers }: ParameterSet): number {
  const found = layers.findIndex(({ lora }) => lora.length > 0);
  return found < 0 ? layers.length : found;
}

function headWeights(weights: DecoderWeights, { ends, valueHead }: ParameterSet, kind: HeadSettings['kind']) {
  const { config } = weights;
  const { hiddenSize, vocabSize, tiedHead } = config;
  const part = (name: 'embedding' | 'norm' | 'head') => ends?.get(name)?.values ?? weights.part(name);
  const embedding = part('embedding');
  const inputs: Record<string, Views[string]> = {
    'norm.scale': { type: 'float32', shape: [hiddenSize], data: part('norm') },
  };
  const gradients: Record<string, Views[string]> = {};
  if (kind === 'policy') {
    const data = tiedHead ? embedding : part('head');
    inputs['head.weight'] = { type: 'float32', shape: [vocabSize, hiddenSize], data };
  }
  if (valueHead !== null)
    for (const item of [valueHead.weight, valueHead.bias]) {
      inputs[item.name] = viewOf(item, item.values);
      gradients[item.name] = viewOf(item, item.gradient);
    }
  if (ends !== null) {
    const norm = ends.get('norm')!;
    gradients['norm.scale'] = viewOf(norm, norm.gradient);
    const head = ends.get(tiedHead ? 'embedding' : 'head');
    if (kind === 'policy') gradients['head.weight'] = viewOf(head!, head!.gradient);
  }
  const head: HeadWeights = {
    inputs,
    gradientInputs: suffixed(gradients, 'sum'),
    gradientOutputs: suffixed(gradients, 'grad'),
  };
  return { head, embedding };
}

function ropeOf(weights: DecoderWeights) {
  const { headDim, ropeTheta: theta, ropeScaling: scaling } = weights.config;
  // Read now: the file may be closed later.
  const stored = scaling.kind === 'stored' ? { storedFactors: weights.part('ropeFactors') } : {};
  return (positions: number) => ropeTables({ headDim, theta, scaling, ...stored }, positions);
}
