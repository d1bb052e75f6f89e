// Builds an encoder's graph and its weights into a folder, or finds them there again.

import type { OnProgress } from '../util/progress.js';
import type { EncoderConfig, Pooling } from './encoder-config.js';
import { encoderGraph } from './encoder-graph.js';
import { type EncoderLayerPart, type EncoderWeights, encoderShape } from './encoder-weights.js';
import { graphsInFolder } from './graph-folder.js';
import { createWeightsFile, type WeightsFile, type WeightsWriter } from './weights-file.js';

/** What an embedder needs to know of a built graph. */
export interface EncoderGraph {
  /** sha256 over graph and weights. */
  readonly digest: string;
  readonly config: EncoderConfig;
  /** See `encoderGraph`. */
  readonly file: string;
  /** Length of a vector. */
  readonly dimension: number;
}

export interface BuildEncoderOptions {
  readonly weights: EncoderWeights;
  readonly pooling: Pooling;
  /** Folder that the files go to. */
  readonly folder: string;
  /** Digest of the files that the weights come from; a graph built from others is built again. */
  readonly sourceDigest: string;
  readonly onProgress?: OnProgress;
}

/** Builds the float32 graph of an encoder, or returns the one that an earlier call left in the folder. */
export async function buildEncoderGraph(options: BuildEncoderOptions): Promise<EncoderGraph> {
  const { weights, folder, sourceDigest, onProgress } = options;
  const { config } = weights;
  // Conventions may carry more than what the graph is made of.
  const pooling: Pooling = { pooling: options.pooling.pooling, normalise: options.pooling.normalise };
  const built = await graphsInFolder({
    folder,
    set: `${pooling.pooling}${pooling.normalise ? '-unit' : ''}`,
    source: { config, pooling, sourceDigest },
    names: ['encoder'],
    writeWeights: (path) => writeEncoderWeights(weights, path, onProgress),
    buildGraph: (_, file) => encoderGraph(config, file, pooling),
  });
  return { digest: built.digest, config, file: built.files.encoder, dimension: config.hiddenSize };
}

async function writeEncoderWeights(
  weights: EncoderWeights,
  path: string,
  onProgress?: OnProgress,
): Promise<WeightsFile> {
  const { layers } = weights.config;
  const writer = await createWeightsFile(path);
  try {
    await writeTables(writer, weights);
    for (let layer = 0; layer < layers; layer++) {
      onProgress?.({ stage: 'encoder weights', done: layer, total: layers, unit: 'layers' });
      await writeLayer(writer, weights, layer);
    }
    const file = await writer.finish();
    onProgress?.({ stage: 'encoder weights', done: layers, total: layers, unit: 'layers' });
    return file;
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

async function writeTables(writer: WeightsWriter, weights: EncoderWeights): Promise<void> {
  const { hiddenSize, vocabSize, maxPositions } = weights.config;
  await writer.add('words', 'float32', [vocabSize, hiddenSize], weights.part('words'));
  const type = weights.part('tokenTypes');
  const positions = weights.part('positions').map((value, at) => value + type[at % hiddenSize]!);
  await writer.add('positions.table', 'float32', [maxPositions, hiddenSize], positions);
  for (const part of ['norm.scale', 'norm.bias'] as const)
    await writer.add(part, 'float32', [hiddenSize], weights.part(part));
}

async function writeLayer(writer: WeightsWriter, weights: EncoderWeights, layer: number): Promise<void> {
  const { config } = weights;
  const prefix = `layers.${layer}`;
  const add = async (part: EncoderLayerPart, kind: 'weight' | 'bias') => {
    const shape = encoderShape(config, part);
    const values = weights.layer(layer, part, kind);
    await writer.add(
      `${prefix}.${part}.${kind}`,
      'float32',
      kind === 'bias' ? shape.slice(0, 1) : shape,
      values,
    );
  };
  const biases = new Float32Array(3 * config.hiddenSize);
  for (const [index, part] of (['q', 'k', 'v'] as const).entries()) {
    await add(part, 'weight');
    biases.set(weights.layer(layer, part, 'bias'), index * config.hiddenSize);
  }
  await writer.add(`${prefix}.qkv.bias`, 'float32', [biases.length], biases);
  for (const part of ['o', 'attentionNorm', 'up', 'down', 'mlpNorm'] as const)
    for (const kind of ['weight', 'bias'] as const) await add(part, kind);
}
