// Which tensors a decoder has, in the order in which files hold them.

import {
  type DecoderConfig,
  type DecoderWeights,
  type LayerPart,
  linearShape,
  type ModelPart,
} from '../../model/index.js';

export interface ExportedTensor {
  readonly layer: number | null;
  readonly part: ModelPart | LayerPart;
  readonly shape: readonly number[];
  readonly data: () => Float32Array;
}

const LINEAR = ['q', 'k', 'v', 'o', 'gate', 'up', 'down'] as const;

/** All tensors; values are made when they are asked for. */
export function exportedTensors(weights: DecoderWeights): ExportedTensor[] {
  const { config } = weights;
  const { vocabSize, hiddenSize, tiedHead } = config;
  const end = (part: ModelPart, shape: readonly number[]): ExportedTensor => ({
    layer: null,
    part,
    shape,
    data: () => weights.part(part),
  });
  const layers = Array.from({ length: config.layers }, (_, layer) =>
    layerParts(config).map(({ part, shape }) => ({
      layer,
      part,
      shape,
      data: () => weights.layer(layer, part),
    })),
  );
  return [
    end('embedding', [vocabSize, hiddenSize]),
    ...layers.flat(),
    end('norm', [hiddenSize]),
    ...(tiedHead ? [] : [end('head', [vocabSize, hiddenSize])]),
  ];
}

function layerParts(
  config: DecoderConfig,
): { readonly part: LayerPart; readonly shape: readonly number[] }[] {
  const { hiddenSize, headDim, qkvBias, qkNorm } = config;
  const linear = LINEAR.map((part) => ({ part, shape: linearShape(config, part) }));
  const biases = (['q', 'k', 'v'] as const).map((module) => ({
    part: `${module}Bias` as const,
    shape: [linearShape(config, module)[0]],
  }));
  return [
    { part: 'attentionNorm', shape: [hiddenSize] },
    ...linear,
    ...(qkvBias ? biases : []),
    ...(qkNorm ? (['qNorm', 'kNorm'] as const).map((part) => ({ part, shape: [headDim] })) : []),
    { part: 'mlpNorm', shape: [hiddenSize] },
  ];
}
