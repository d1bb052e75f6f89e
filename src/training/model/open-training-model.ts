import {
  type DecoderConfig,
  type DecoderWeights,
  type GraphPrecision,
  quantisedLinear,
  quantisedValues,
  ropeTables,
  type Trained,
} from '../../model/index.js';
import type { OnnxRuntime, Runner } from '../../runtime/index.js';
import type { TrainingModel } from '../training-model.js';
import { Arena } from './arena.js';
import { HeadRunner, type HeadWeights } from './head-runner.js';
import { LayerRunner } from './layer-runner.js';
import { type LayerSource, LayerWeights, suffixed } from './layer-weights.js';
import { LayeredLane, type LayeredLaneParts } from './layered-lane.js';
import { createLayeredModel } from './layered-model.js';
import { MergeStage } from './merge-stage.js';
import {
  createParameters,
  type LayerParameters,
  type ParameterSet,
  type TrainableWeights,
  viewOf,
  withOwnGradients,
} from './parameters.js';
import { Cancellation, type StageOptions, type Views } from './stage-session.js';
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
  /** Micro-batches that run side by side and share threads and activation bytes. Default 1. */
  readonly lanes?: number;
  /** Whether threads spin while they wait. Default true; false where other sessions use the cores. */
  readonly spinning?: boolean;
  /** Bytes for activations that are kept for the backward run; layers beyond it are computed again. Default: no limit. */
  readonly activationBytes?: number;
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
  const { head = { kind: 'policy' }, trainable } = options;
  const count = options.lanes ?? 1;
  const shared = sharedParts(options, head);
  const { parameters } = shared;
  const sets = [parameters, ...Array.from({ length: count - 1 }, () => withOwnGradients(parameters))];
  const trained: Trained = trainable.kind === 'all' ? { kind: 'all' } : { kind: 'lora', ranks: {} };
  const closing: { close(): void }[] = [];
  const stagesFor = (threads: number, runner: Runner | null): Stages => {
    const stages = new Stages(shared.config, { ...shared.stageOptions, threads, runner }, trained, head.kind);
    closing.push(stages);
    return stages;
  };
  const memories = sets.map(() => ({ workspace: new Workspace(), arena: new Arena() }));
  const first = memories[0] as LaneMemory;
  const alone = openLane(shared, stagesFor(options.threads, null), parameters, first);
  const threads = Math.max(1, Math.floor(options.threads / count));
  const runners = count === 1 ? [] : await Promise.all(sets.map(() => options.runtime.startRunner()));
  const lanes = runners.map((runner, i) =>
    openLane(shared, stagesFor(threads, runner), sets[i] as ParameterSet, memories[i] as LaneMemory),
  );
  return createLayeredModel({
    alone,
    lanes: count === 1 ? [alone] : lanes,
    parameters: sets,
    cancel: shared.stageOptions.cancel,
    close() {
      for (const part of [...closing, shared.merge]) part.close();
      for (const { workspace, arena } of memories) {
        workspace.clear();
        arena.clear();
      }
      for (const runner of runners) void runner.close();
    },
  });
}

type LaneMemory = Pick<LayeredLaneParts, 'workspace' | 'arena'>;

type SharedParts = ReturnType<typeof sharedParts>;

/** What all lanes have in common. */
function sharedParts(options: TrainingModelOptions, head: HeadSettings) {
  const { runtime, threads, spinning = true, trainable } = options;
  const precision = options.precision ?? 'q8';
  const weights = quantisedValues(options.weights, precision);
  const stageOptions: StageOptions = {
    runtime,
    threads,
    spinning,
    runner: null,
    cancel: new Cancellation(),
  };
  const parameters = createParameters(weights, trainable, head);
  const source: LayerSource = {
    values: weights,
    quantised: (layer, module) => quantisedLinear(options.weights, precision, layer, module),
  };
  const layerWeights = parameters.layers.map((own, layer) => new LayerWeights(source, layer, own));
  const merge = new MergeStage(stageOptions);
  const lowest = trainable.kind === 'all' ? -1 : lowestTrained(parameters);
  let refreshing: Promise<void> | null = null;
  return {
    config: weights.config,
    parameters,
    stageOptions,
    layerWeights,
    merge,
    lowest,
    kind: head.kind,
    ends: endWeights(weights, parameters, head.kind),
    rope: ropeOf(weights),
    activationBytes: (options.activationBytes ?? Number.POSITIVE_INFINITY) / (options.lanes ?? 1),
    /** Once for all lanes that begin together. */
    refresh(): Promise<void> {
      refreshing ??= (async () => {
        for (const own of layerWeights) await own.refresh(merge);
      })().finally(() => {
        refreshing = null;
      });
      return refreshing;
    },
  };
}

function openLane(
  shared: SharedParts,
  stages: Stages,
  parameters: ParameterSet,
  { workspace, arena }: LaneMemory,
): LayeredLane {
  const { config, lowest, layerWeights, ends, kind, rope, activationBytes, refresh } = shared;
  const layers = layerWeights.map((weights, layer) => {
    const form = { trained: weights.trained, inputGradient: layer > lowest };
    const tensors = weights.tensors(parameters.layers[layer] as LayerParameters);
    return new LayerRunner(config, layer, tensors, stages.layer(form), layer === config.layers - 1);
  });
  const head = { inputs: ends.inputs, ...headGradients(config, parameters, kind) };
  return new LayeredLane({
    config,
    parameters,
    layers,
    lowest: Math.max(lowest, 0),
    head: new HeadRunner(stages.head, stages.direction, head, workspace, kind),
    embedding: ends.embedding,
    embeddingGradient: parameters.ends?.get('embedding')?.gradient ?? null,
    rope,
    workspace,
    arena,
    activationBytes,
    refresh,
  });
}

/** The first layer in which something is trained; the number of layers where only the head is. */
function lowestTrained({ layers }: ParameterSet): number {
  const found = layers.findIndex(({ lora }) => lora.length > 0);
  return found < 0 ? layers.length : found;
}

/** The embedding, and what the head takes beside hidden states. */
function endWeights(
  weights: DecoderWeights,
  { ends, valueHead }: ParameterSet,
  kind: HeadSettings['kind'],
): { readonly embedding: Float32Array; readonly inputs: Views } {
  const { hiddenSize, vocabSize, tiedHead } = weights.config;
  const part = (name: 'embedding' | 'norm' | 'head') => ends?.get(name)?.values ?? weights.part(name);
  const embedding = part('embedding');
  const inputs: Record<string, Views[string]> = {
    'norm.scale': { type: 'float32', shape: [hiddenSize], data: part('norm') },
  };
  if (kind === 'policy') {
    const data = tiedHead ? embedding : part('head');
    inputs['head.weight'] = { type: 'float32', shape: [vocabSize, hiddenSize], data };
  }
  if (valueHead !== null)
    for (const item of [valueHead.weight, valueHead.bias]) inputs[item.name] = viewOf(item, item.values);
  return { embedding, inputs };
}

function headGradients(
  { tiedHead }: DecoderConfig,
  { ends, valueHead }: ParameterSet,
  kind: HeadSettings['kind'],
): Omit<HeadWeights, 'inputs'> {
  const gradients: Record<string, Views[string]> = {};
  if (valueHead !== null)
    for (const item of [valueHead.weight, valueHead.bias]) gradients[item.name] = viewOf(item, item.gradient);
  if (ends !== null) {
    const norm = ends.get('norm')!;
    gradients['norm.scale'] = viewOf(norm, norm.gradient);
    const head = ends.get(tiedHead ? 'embedding' : 'head');
    if (kind === 'policy') gradients['head.weight'] = viewOf(head!, head!.gradient);
  }
  return { gradientInputs: suffixed(gradients, 'sum'), gradientOutputs: suffixed(gradients, 'grad') };
}

function ropeOf(weights: DecoderWeights) {
  const { headDim, ropeTheta: theta, ropeScaling: scaling } = weights.config;
  // Read now: the file may be closed later.
  const stored = scaling.kind === 'stored' ? { storedFactors: weights.part('ropeFactors') } : {};
  return (positions: number) => ropeTables({ headDim, theta, scaling, ...stored }, positions);
}
