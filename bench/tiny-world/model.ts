// The tiny model before anything is learned: a Llama of about a million parameters with random weights.

import { join } from 'node:path';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import { derivedSeed } from '#searchloop/util/derived-seed.js';
import { randomNumbers } from '#searchloop/util/random.js';
import { type PlainType, type WrittenTensor, writeSafetensors } from '#searchloop/weights/index.js';
import { tokenizerFiles } from './tokenizer.js';
import type { World } from './world.js';

export interface TinyModelShape {
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly maxPositions: number;
}

const TINY_MODEL_SHAPE: TinyModelShape = {
  hiddenSize: 128,
  intermediateSize: 512,
  layers: 4,
  heads: 4,
  kvHeads: 2,
  maxPositions: 512,
};

/** Standard deviations of fresh weights; those that write into the residual stream are smaller by sqrt(2 layers). */
const EMBEDDING_DEVIATION = 0.05;
const LINEAR_DEVIATION = 0.06;

const jsonText = (value: object): string => `${JSON.stringify(value, null, 1)}\n`;

/** Writes tokenizer and settings of the tiny model: all of its folder but the weights. */
export async function writeTinyModelFiles(
  folder: string,
  world: World,
  shape: TinyModelShape = TINY_MODEL_SHAPE,
): Promise<void> {
  const { tokenizerJson, tokenizerConfig, vocabSize, endTokenId } = tokenizerFiles(world);
  const config = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_act: 'silu',
    hidden_size: shape.hiddenSize,
    intermediate_size: shape.intermediateSize,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.kvHeads,
    max_position_embeddings: shape.maxPositions,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    tie_word_embeddings: true,
    vocab_size: vocabSize,
    eos_token_id: endTokenId,
    torch_dtype: 'float16',
  };
  await writeFileAtomic(join(folder, 'config.json'), jsonText(config));
  await writeFileAtomic(join(folder, 'tokenizer.json'), jsonText(tokenizerJson));
  await writeFileAtomic(join(folder, 'tokenizer_config.json'), jsonText(tokenizerConfig));
}

/** A model with random weights, as a folder that can be imported. */
export async function writeRandomModel(
  folder: string,
  world: World,
  seed: number,
  shape: TinyModelShape = TINY_MODEL_SHAPE,
): Promise<void> {
  await writeTinyModelFiles(folder, world, shape);
  const { vocabSize } = tokenizerFiles(world);
  await writeSafetensors(join(folder, 'model.safetensors'), randomTensors(vocabSize, seed, shape), {
    format: 'pt',
  });
}

function randomTensors(vocabSize: number, seed: number, shape: TinyModelShape): WrittenTensor[] {
  const { hiddenSize, intermediateSize, layers, heads, kvHeads } = shape;
  const headDim = hiddenSize / heads;
  const narrow = LINEAR_DEVIATION / Math.sqrt(2 * layers);
  const matrix = (name: string, rows: number, columns: number, deviation: number): WrittenTensor => ({
    name: `model.${name}.weight`,
    shape: [rows, columns],
    type: 'F32' as PlainType,
    data: () => normalNumbers(rows * columns, deviation, derivedSeed(seed, name)),
  });
  const ones = (name: string): WrittenTensor => ({
    name: `model.${name}.weight`,
    shape: [hiddenSize],
    type: 'F32' as PlainType,
    data: () => new Float32Array(hiddenSize).fill(1),
  });
  const layer = (at: string): WrittenTensor[] => [
    ones(`${at}.input_layernorm`),
    matrix(`${at}.self_attn.q_proj`, hiddenSize, hiddenSize, LINEAR_DEVIATION),
    matrix(`${at}.self_attn.k_proj`, kvHeads * headDim, hiddenSize, LINEAR_DEVIATION),
    matrix(`${at}.self_attn.v_proj`, kvHeads * headDim, hiddenSize, LINEAR_DEVIATION),
    matrix(`${at}.self_attn.o_proj`, hiddenSize, hiddenSize, narrow),
    ones(`${at}.post_attention_layernorm`),
    matrix(`${at}.mlp.gate_proj`, intermediateSize, hiddenSize, LINEAR_DEVIATION),
    matrix(`${at}.mlp.up_proj`, intermediateSize, hiddenSize, LINEAR_DEVIATION),
    matrix(`${at}.mlp.down_proj`, hiddenSize, intermediateSize, narrow),
  ];
  return [
    matrix('embed_tokens', vocabSize, hiddenSize, EMBEDDING_DEVIATION),
    ...Array.from({ length: layers }, (_, i) => layer(`layers.${i}`)).flat(),
    ones('norm'),
  ];
}

/** Box and Muller. */
function normalNumbers(count: number, deviation: number, seed: number): Float32Array {
  const random = randomNumbers(seed);
  return Float32Array.from(
    { length: count },
    () => deviation * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
}
