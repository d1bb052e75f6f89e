// An encoder's tensors under one set of names.

import { FileFormatError } from '../errors.js';
import type { TensorSource } from '../weights/index.js';
import type { EncoderConfig } from './encoder-config.js';

/** Tensors that occur once: tables [n, hidden] and the norm after them. */
export type EncoderPart = 'words' | 'positions' | 'tokenTypes' | 'norm.scale' | 'norm.bias';

const PARTS: Readonly<Record<EncoderPart, string>> = {
  words: 'embeddings.word_embeddings.weight',
  positions: 'embeddings.position_embeddings.weight',
  tokenTypes: 'embeddings.token_type_embeddings.weight',
  'norm.scale': 'embeddings.LayerNorm.weight',
  'norm.bias': 'embeddings.LayerNorm.bias',
};

/** Linear layers and norms of an encoder layer, in the order in which they run. */
const LAYER_PARTS = {
  q: 'attention.self.query',
  k: 'attention.self.key',
  v: 'attention.self.value',
  o: 'attention.output.dense',
  attentionNorm: 'attention.output.LayerNorm',
  up: 'intermediate.dense',
  down: 'output.dense',
  mlpNorm: 'output.LayerNorm',
} as const;

export type EncoderLayerPart = keyof typeof LAYER_PARTS;

export interface EncoderWeights {
  readonly config: EncoderConfig;
  /** Row major float32. */
  part(part: EncoderPart): Float32Array;
  /** Weights are [out, in], those of norms [hidden]; biases [out]. */
  layer(layer: number, part: EncoderLayerPart, kind: 'weight' | 'bias'): Float32Array;
}

/** [out, in] of a linear layer, [hidden] of a norm. */
export function encoderShape(config: EncoderConfig, part: EncoderLayerPart): readonly number[] {
  const { hiddenSize, intermediateSize } = config;
  if (part === 'attentionNorm' || part === 'mlpNorm') return [hiddenSize];
  if (part === 'up') return [intermediateSize, hiddenSize];
  return part === 'down' ? [hiddenSize, intermediateSize] : [hiddenSize, hiddenSize];
}

/**
 * Opens an encoder's tensors by canonical names; `bert.` before all names is fine.
 * @throws {FileFormatError} a tensor is missing or has another shape than the config says
 */
export function encoderWeights(config: EncoderConfig, source: TensorSource): EncoderWeights {
  const prefix = source.tensors.has(`bert.${PARTS.words}`) ? 'bert.' : '';
  const layerName = (layer: number, part: EncoderLayerPart, kind: string): string =>
    `encoder.layer.${layer}.${LAYER_PARTS[part]}.${kind}`;
  const read = (name: string): Float32Array => source.readFloat32(`${prefix}${name}`);
  const check = (name: string, shape: readonly number[]): void => {
    const found = source.tensors.get(`${prefix}${name}`);
    if (found === undefined)
      throw new FileFormatError(`tensor "${prefix}${name}" is missing; expected [${shape}]`);
    if (found.shape.join() !== shape.join())
      throw new FileFormatError(
        `${found.file}: tensor "${prefix}${name}" is [${found.shape}], the config says [${shape}]`,
      );
  };
  const { hiddenSize, vocabSize, maxPositions, tokenTypes } = config;
  check(PARTS.words, [vocabSize, hiddenSize]);
  check(PARTS.positions, [maxPositions, hiddenSize]);
  check(PARTS.tokenTypes, [tokenTypes, hiddenSize]);
  check(PARTS['norm.scale'], [hiddenSize]);
  check(PARTS['norm.bias'], [hiddenSize]);
  for (let layer = 0; layer < config.layers; layer++)
    for (const part of Object.keys(LAYER_PARTS) as EncoderLayerPart[]) {
      const shape = encoderShape(config, part);
      check(layerName(layer, part, 'weight'), shape);
      check(layerName(layer, part, 'bias'), shape.slice(0, 1));
    }
  return {
    config,
    part: (part) => read(PARTS[part]),
    layer: (layer, part, kind) => read(layerName(layer, part, kind)),
  };
}
