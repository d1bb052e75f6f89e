// A policy as other tools load it: safetensors in the hub's layout, or one GGUF file; an adapter merged in.

import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type DecoderConfig,
  type DecoderWeights,
  hubLayerTensor,
  hubModelTensor,
  type LayerPart,
  type ModelPart,
  readAdapter,
  ropeFrequencies,
  type StoredModel,
} from '../../model/index.js';
import { writeFileAtomic } from '../../util/atomic-file.js';
import {
  type GgufEntry,
  type GgufTensor,
  openGguf,
  openSafetensorsFile,
  type PlainType,
  type TensorSource,
  writeGguf,
  writeSafetensors,
} from '../../weights/index.js';
import { holdsWholeWeights, WHOLE_WEIGHTS } from '../checkpoint/trained-files.js';
import { openDecoderWeights } from '../trainer/decoder.js';
import { ggufMetadata } from './gguf-metadata.js';
import { generationConfig, hubConfig } from './hub-config.js';
import { mergedWeights, replacedWeights } from './merged-weights.js';
import { type ExportedTensor, exportedTensors } from './tensor-names.js';
import { completeTokenizerJson } from './tokenizer-json.js';

export interface ExportOptions {
  readonly model: StoredModel;
  /** PEFT folder, or a checkpoint of whole weights; null exports the model as it is. */
  readonly adapter: string | null;
}

/** Opens model and what was trained for the time of `write`. */
async function withMerged<Result>(
  { model, adapter }: ExportOptions,
  write: (weights: DecoderWeights, source: TensorSource) => Promise<Result>,
): Promise<Result> {
  const source = model.openWeights();
  const whole =
    adapter !== null && holdsWholeWeights(adapter) ? openSafetensorsFile(join(adapter, WHOLE_WEIGHTS)) : null;
  try {
    const weights = openDecoderWeights(model, source);
    if (whole !== null) return await write(replacedWeights(weights, whole), source);
    const read = adapter === null ? null : readAdapter(adapter, weights.config);
    return await write(mergedWeights(weights, read), source);
  } finally {
    source.close();
    whole?.close();
  }
}

/**
 * Writes config.json, model.safetensors and the tokenizer's files into a folder that transformers and vLLM load.
 * @throws {UnsupportedError} rotary factors that config.json cannot hold
 */
export function exportSafetensors(
  options: ExportOptions,
  folder: string,
  type: PlainType = 'F16',
): Promise<void> {
  return withMerged(options, async (weights) => {
    // First what can be refused: nothing is left behind then.
    const config = hubConfig(weights.config, type);
    await mkdir(folder, { recursive: true });
    const tensors = exportedTensors(weights).map(({ layer, part, shape, data }) => ({
      name: layer === null ? hubModelTensor(part as ModelPart) : hubLayerTensor(layer, part as LayerPart),
      type,
      shape,
      data,
    }));
    const json = (name: string, value: unknown): Promise<void> =>
      writeFileAtomic(join(folder, name), `${JSON.stringify(value, null, 2)}\n`);
    await writeSafetensors(join(folder, 'model.safetensors'), tensors, { format: 'pt' });
    await json('generation_config.json', generationConfig(weights.config));
    await writeTokenizer(options.model, folder, json);
    // Last: a folder without it is no model.
    await json('config.json', config);
  });
}

async function writeTokenizer(
  model: StoredModel,
  folder: string,
  json: (name: string, value: unknown) => Promise<void>,
): Promise<void> {
  const { tokenizerJson, tokenizerConfig, chatTemplate } = await model.readTokenizer();
  await json('tokenizer.json', completeTokenizerJson(tokenizerJson as Record<string, unknown>));
  await json('tokenizer_config.json', {
    tokenizer_class: 'PreTrainedTokenizerFast',
    ...(tokenizerConfig as object | undefined),
    ...(chatTemplate === undefined ? {} : { chat_template: chatTemplate }),
  });
  const template = model.file('chatTemplate');
  if (template !== null) await copyFile(template, join(folder, 'chat_template.jinja'));
}

/** File types of GGUF's `general.file_type`. */
const FILE_TYPES = { F32: 0, F16: 1, Q8_0: 7, BF16: 32 } as const;
export type GgufType = keyof typeof FILE_TYPES;

/**
 * Writes one GGUF file that llama.cpp loads. Vectors stay in float32; matrices have the type.
 * @throws {UnsupportedError} a tokenizer that GGUF has no name for
 */
export function exportGguf(options: ExportOptions, file: string, type: GgufType = 'F16'): Promise<void> {
  return withMerged(options, async (weights, source) => {
    const metadata = await metadataOf(options.model, weights.config, source);
    metadata.set('general.file_type', { type: 'uint32', items: null, value: FILE_TYPES[type] });
    const tensors = exportedTensors(weights).map((tensor) => ggufTensor(tensor, weights.config, type));
    await writeGguf(file, metadata, [...ropeFactors(weights), ...tensors]);
  });
}

/** A GGUF source keeps its own words; another is described anew. */
async function metadataOf(
  model: StoredModel,
  config: DecoderConfig,
  source: TensorSource,
): Promise<Map<string, GgufEntry>> {
  const weights = model.file('weights');
  if (source.format !== 'gguf' || weights === null)
    return ggufMetadata(model.record.id, config, await model.readTokenizer());
  const gguf = openGguf(weights);
  gguf.close();
  return new Map(gguf.entries);
}

const GGUF_ENDS: Readonly<Record<ModelPart, string>> = {
  embedding: 'token_embd.weight',
  head: 'output.weight',
  norm: 'output_norm.weight',
  ropeFactors: 'rope_freqs.weight',
};

const GGUF_LAYER: Readonly<Record<LayerPart, string>> = {
  q: 'attn_q.weight',
  k: 'attn_k.weight',
  v: 'attn_v.weight',
  o: 'attn_output.weight',
  gate: 'ffn_gate.weight',
  up: 'ffn_up.weight',
  down: 'ffn_down.weight',
  qBias: 'attn_q.bias',
  kBias: 'attn_k.bias',
  vBias: 'attn_v.bias',
  qNorm: 'attn_q_norm.weight',
  kNorm: 'attn_k_norm.weight',
  attentionNorm: 'attn_norm.weight',
  mlpNorm: 'ffn_norm.weight',
};

function ggufTensor(tensor: ExportedTensor, config: DecoderConfig, type: GgufType): GgufTensor {
  const { layer, part, shape, data } = tensor;
  const name =
    layer === null ? GGUF_ENDS[part as ModelPart] : `blk.${layer}.${GGUF_LAYER[part as LayerPart]}`;
  const paired = config.architecture === 'llama' && (part === 'q' || part === 'k');
  const columns = shape.at(-1) as number;
  // Rows that do not fill the blocks of Q8_0 stay in half precision.
  const fitting = type === 'Q8_0' && columns % 32 !== 0 ? 'F16' : type;
  return {
    name,
    shape,
    type: shape.length === 1 ? 'F32' : fitting,
    data: paired ? () => halvesToPairs(data(), config.headDim, columns) : data,
  } as GgufTensor;
}

/** llama.cpp rotates neighbours: within each head row i and row i + headDim / 2 come to stand side by side. */
function halvesToPairs(values: Float32Array, headDim: number, columns: number): Float32Array {
  const paired = new Float32Array(values.length);
  const half = headDim / 2;
  for (let row = 0; row < values.length / columns; row++) {
    const place = row % headDim;
    const from = row - place + (place % 2) * half + Math.floor(place / 2);
    paired.set(values.subarray(from * columns, (from + 1) * columns), row * columns);
  }
  return paired;
}

/** Divisors of the rotary frequencies, where they differ from the plain ones. */
function ropeFactors(weights: DecoderWeights): GgufTensor[] {
  const { headDim, ropeTheta: theta, ropeScaling: scaling } = weights.config;
  if (scaling.kind === 'none') return [];
  const factors = (): Float32Array => {
    if (scaling.kind === 'stored') return weights.part('ropeFactors');
    const plain = ropeFrequencies({ headDim, theta, scaling: { kind: 'none' } });
    const scaled = ropeFrequencies({ headDim, theta, scaling });
    return plain.map((frequency, i) => frequency / (scaled[i] as number));
  };
  return [{ name: GGUF_ENDS.ropeFactors, type: 'F32', shape: [headDim / 2], data: factors }];
}
