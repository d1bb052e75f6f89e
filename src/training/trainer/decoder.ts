// Opens an imported decoder for training: an adapter on the linear layers, or all weights; with a critic where needed.

import { join } from 'node:path';
import { UnsupportedError } from '../../errors.js';
import {
  type Adapter,
  type DecoderWeights,
  decoderWeights,
  describeDecoder,
  type GraphPrecision,
  modulePath,
  openModel,
  readAdapter,
  type StoredModel,
} from '../../model/index.js';
import { openRuntime } from '../../runtime/index.js';
import { sha256File } from '../../util/digest.js';
import { jsonObject, readJsonFileSync } from '../../util/json-file.js';
import type { TensorSource } from '../../weights/index.js';
import { type LoraShape, type TrainedForm, WHOLE_WEIGHTS } from '../checkpoint/trained-files.js';
import { openTrainingModel, type TrainableWeights } from '../model/index.js';
import type { Trainable, TrainedPart } from './trainable.js';

export interface DecoderSpec {
  /** Of `homeFolder(config)`. */
  readonly home: string;
  readonly modelId: string;
  /** The values that an engine of this precision computes with are trained on. */
  readonly precision: GraphPrecision;
  readonly trained: 'lora' | 'whole';
  readonly rank: number;
  readonly alpha: number;
  /** Of fresh weights. */
  readonly seed: number;
  /** Folder of the adapter that the run starts from, which then decides rank and scale; null: a fresh one. */
  readonly adapter: string | null;
  readonly critic: boolean;
  readonly threads: number;
  /** Micro-batches that run side by side and share the threads. */
  readonly lanes: number;
  /** Bytes of activations that are kept for the backward run. */
  readonly activationBytes: number;
}

/**
 * @throws {NotFoundError} no such model or adapter
 * @throws {UnsupportedError} an adapter whose ranks, scales or modules differ from layer to layer
 */
export async function openDecoder(spec: DecoderSpec): Promise<Trainable> {
  const model = await openModel(spec.home, spec.modelId);
  const source = model.openWeights();
  try {
    const weights = openDecoderWeights(model, source);
    const adapter = spec.adapter === null ? null : readAdapter(spec.adapter, weights.config);
    const form = formOf(spec, adapter, weights.config.layers);
    const policy = { form, model: await openPart(spec, weights, adapter, 'policy') };
    const critic: TrainedPart | null = spec.critic
      ? { form, model: await openPart(spec, weights, adapter, 'value') }
      : null;
    return {
      policy,
      critic,
      versionOf: async (folder) =>
        spec.trained === 'lora'
          ? readAdapter(folder, weights.config).digest
          : sha256File(join(folder, WHOLE_WEIGHTS)),
      close() {
        policy.model.close();
        critic?.model.close();
      },
    };
  } finally {
    source.close();
  }
}

/** The tensors of an imported decoder, with what its own settings say of it. The caller keeps `source` open. */
export function openDecoderWeights(model: StoredModel, source: TensorSource): DecoderWeights {
  const { tensors, metadata } = source;
  if (source.format === 'gguf') return decoderWeights(describeDecoder({ gguf: metadata, tensors }), source);
  const json = (role: 'config' | 'generationConfig'): object | undefined => {
    const path = model.file(role);
    return path === null ? undefined : readJsonFileSync(path, jsonObject);
  };
  const generationConfigJson = json('generationConfig');
  const config = describeDecoder({
    configJson: json('config') ?? {},
    ...(generationConfigJson === undefined ? {} : { generationConfigJson }),
    tensors,
  });
  return decoderWeights(config, source);
}

async function openPart(
  spec: DecoderSpec,
  weights: DecoderWeights,
  adapter: Adapter | null,
  kind: 'policy' | 'value',
) {
  const { precision, threads, lanes, activationBytes } = spec;
  return openTrainingModel({
    runtime: await openRuntime(),
    weights,
    precision,
    trainable: trainableOf(spec, adapter),
    head: { kind },
    threads,
    lanes,
    // The engine's threads may want the cores.
    spinning: false,
    activationBytes,
  });
}

function trainableOf({ trained, rank, alpha, seed }: DecoderSpec, adapter: Adapter | null): TrainableWeights {
  if (trained === 'whole') return { kind: 'all' };
  return adapter === null ? { kind: 'lora', rank, alpha, seed } : { kind: 'lora', adapter };
}

/** Linear layers of each block that a fresh adapter changes. */
export const ALL_LINEAR = ['q', 'k', 'v', 'o', 'gate', 'up', 'down'] as const;

const peftNames = (modules: readonly string[]): string[] => modules.map((module) => `${module}_proj`);

function formOf(
  { trained, rank, alpha, modelId }: DecoderSpec,
  adapter: Adapter | null,
  layers: number,
): TrainedForm {
  if (trained === 'whole') {
    if (adapter !== null) throw new UnsupportedError('whole weights are not trained on top of an adapter');
    return { kind: 'whole' };
  }
  if (adapter === null)
    return {
      kind: 'lora',
      lora: { rank, alpha, targetModules: peftNames(ALL_LINEAR) },
      baseModel: modelId,
    };
  return { kind: 'lora', lora: loraShape(adapter, layers), baseModel: modelId };
}

/**
 * What an adapter is as something to train.
 * @param layers  of the model
 * @throws {UnsupportedError} its layers have different ranks or scales, or it changes a module in some blocks only
 */
export function loraShape(adapter: Adapter, layers: number): LoraShape {
  const [first] = adapter.modules;
  const odd = adapter.modules.find((item) => item.rank !== first?.rank || item.scale !== first?.scale);
  if (first === undefined || odd !== undefined)
    throw new UnsupportedError(
      `an adapter is trained on where all its layers have one rank and scale; here ${odd?.rank} and ${odd?.scale} beside ${first?.rank} and ${first?.scale}`,
    );
  const modules = ALL_LINEAR.filter((name) => adapter.modules.some(({ module }) => module === name));
  const paths = new Set(adapter.modules.map(({ layer, module }) => modulePath(layer, module)));
  const lacking = modules.flatMap((module) =>
    Array.from({ length: layers }, (_, layer) => modulePath(layer, module)).filter(
      (path) => !paths.has(path),
    ),
  );
  if (lacking.length > 0)
    throw new UnsupportedError(
      `an adapter is trained on where it changes the same modules in all blocks; here not ${lacking[0]}, one of ${lacking.length} that it leaves as they are`,
    );
  return { rank: first.rank, alpha: first.scale * first.rank, targetModules: peftNames(modules) };
}
