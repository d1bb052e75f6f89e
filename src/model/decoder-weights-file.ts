// Writes a decoder's weights in one precision, fused as the step graph takes them.

import { BLOCK_SIZE, type QuantisedMatrix, quantise4, quantise8 } from '../weights/index.js';
import { ADAPTER_GROUPS, GROUP_MODULES, groupShape } from './adapter-groups.js';
import type { DecoderConfig } from './decoder-config.js';
import type { DecoderWeights } from './decoder-weights.js';
import { ropeTables } from './rope.js';
import { createWeightsFile, type WeightsFile, type WeightsWriter } from './weights-file.js';

/**
 * `fp32`; `q8`, everything in blocks of 8 bits; `q4`, the layers in blocks of 4 bits, embedding and head of 8,
 * where 4 bits would cost most and save least.
 */
export type GraphPrecision = 'fp32' | 'q8' | 'q4';

type Bits = 4 | 8 | 32;

export interface WeightBits {
  readonly layers: Bits;
  /** Of embedding and head. */
  readonly ends: Bits;
}

export const LAYER_BITS: Readonly<Record<GraphPrecision, Bits>> = { fp32: 32, q8: 8, q4: 4 };
/** Bits of embedding and head. */
export const END_BITS: Readonly<Record<GraphPrecision, Bits>> = { fp32: 32, q8: 8, q4: 8 };

/** Writes the file at `path`, aside first; a failure leaves nothing. */
export async function writeDecoderWeights(
  weights: DecoderWeights,
  bits: WeightBits,
  path: string,
  onProgress?: (done: number, total: number) => void,
): Promise<WeightsFile> {
  const { layers } = weights.config;
  const writer = await createWeightsFile(path);
  const progress = (done: number) => onProgress?.(done, layers + 1);
  try {
    for (let layer = 0; layer < layers; layer++) {
      progress(layer);
      await writeLayer(writer, weights, layer, bits.layers);
    }
    progress(layers);
    await writeEnds(writer, weights, bits.ends);
    const file = await writer.finish();
    progress(layers + 1);
    return file;
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

async function writeLayer(
  writer: WeightsWriter,
  weights: DecoderWeights,
  layer: number,
  bits: Bits,
): Promise<void> {
  const { config } = weights;
  const prefix = `layers.${layer}`;
  for (const group of ADAPTER_GROUPS) {
    const parts = GROUP_MODULES[group].map((module) => weights.layer(layer, module));
    const { inputs, outputs } = groupShape(config, group);
    await writeLinear(writer, `${prefix}.${group}`, joined(parts), [outputs, inputs], bits);
  }
  if (config.qkvBias) {
    const biases = (['qBias', 'kBias', 'vBias'] as const).map((part) => weights.layer(layer, part));
    await writer.add(`${prefix}.qkv.bias`, 'float32', [groupShape(config, 'qkv').outputs], joined(biases));
  }
  for (const part of ['attentionNorm', 'mlpNorm'] as const)
    await writer.add(`${prefix}.${part}.scale`, 'float32', [config.hiddenSize], weights.layer(layer, part));
  if (config.qkNorm)
    for (const part of ['qNorm', 'kNorm'] as const)
      await writer.add(`${prefix}.${part}.scale`, 'float32', [config.headDim], weights.layer(layer, part));
}

/** Embedding, head, last norm and rotary tables. */
async function writeEnds(writer: WeightsWriter, weights: DecoderWeights, bits: Bits): Promise<void> {
  const { config } = weights;
  const { hiddenSize, vocabSize } = config;
  await writeLinear(writer, 'head', weights.part('head'), [vocabSize, hiddenSize], bits);
  await writeEmbedding(writer, weights, bits);
  await writer.add('norm.scale', 'float32', [hiddenSize], weights.part('norm'));
  await writeRope(writer, weights, config);
}

/** A tied embedding is the very bytes of the head. Rows that do not fill whole blocks stay float32. */
async function writeEmbedding(writer: WeightsWriter, weights: DecoderWeights, bits: Bits): Promise<void> {
  const { vocabSize, hiddenSize, tiedHead } = weights.config;
  const table = [vocabSize, hiddenSize];
  const inBlocks = bits === 8 && hiddenSize % BLOCK_SIZE === 0;
  if (tiedHead && (bits === 32 || inBlocks)) {
    writer.alias('embedding.weight', 'head.weight', table);
    if (inBlocks) writer.alias('embedding.scales', 'head.scales');
  } else if (inBlocks) {
    const matrix = quantise8(weights.part('embedding'), vocabSize, hiddenSize);
    await writer.add('embedding.weight', 'uint8', table, matrix.values);
    await writer.add('embedding.scales', 'float32', [vocabSize, matrix.blocks], matrix.scales);
  } else await writer.add('embedding.weight', 'float32', table, weights.part('embedding'));
}

async function writeRope(writer: WeightsWriter, weights: DecoderWeights, config: DecoderConfig) {
  const { headDim, ropeTheta: theta, ropeScaling: scaling, maxPositions } = config;
  const stored = scaling.kind === 'stored' ? { storedFactors: weights.part('ropeFactors') } : {};
  const { cosines, sines } = ropeTables({ headDim, theta, scaling, ...stored }, maxPositions);
  await writer.add('rope.cosines', 'float32', [maxPositions, headDim / 2], cosines);
  await writer.add('rope.sines', 'float32', [maxPositions, headDim / 2], sines);
}

async function writeLinear(
  writer: WeightsWriter,
  name: string,
  values: Float32Array,
  [rows, columns]: readonly [number, number],
  bits: Bits,
): Promise<void> {
  if (bits === 32) return writer.add(`${name}.weight`, 'float32', [rows, columns], values);
  const matrix: QuantisedMatrix = (bits === 8 ? quantise8 : quantise4)(values, rows, columns);
  const { blocks, scales, zeroPoints } = matrix;
  await writer.add(`${name}.weight`, 'uint8', [rows, blocks, (BLOCK_SIZE * bits) / 8], matrix.values);
  await writer.add(`${name}.scales`, 'float32', [rows, blocks], scales);
  if (zeroPoints !== null)
    await writer.add(`${name}.zeros`, 'uint8', [rows, Math.ceil((blocks * bits) / 8)], zeroPoints);
}

function joined(parts: readonly Float32Array[]): Float32Array {
  if (parts.length === 1) return parts[0]!;
  const result = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}
