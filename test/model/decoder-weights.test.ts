import { decoderWeights, describeDecoder } from '../../src/model/index.js';
import { openWeights, type TensorInfo, type TensorSource } from '../../src/weights/index.js';
import { fixture, readJson } from '../support/fixtures.js';
import { modelWeights } from '../support/model-weights.js';
import { ggufWeights } from './support/fixtures.js';

/** The stored model with its tensor list changed. */
function variant(name: string, change: (tensors: Map<string, TensorInfo>) => void): () => unknown {
  const source = openWeights(fixture('models', name));
  const tensors = new Map(source.tensors);
  change(tensors);
  const changed: TensorSource = { ...source, tensors };
  const config = describeDecoder({ configJson: readJson('models', name, 'config.json'), tensors });
  return () => decoderWeights(config, changed);
}

test('GGUF rows of q and k are put back into the order that the graph rotates', () => {
  const [gguf, safetensors] = [
    ggufWeights(fixture('gguf', 'tiny-llama-f32.gguf')),
    modelWeights('tiny-llama'),
  ];
  for (const part of ['q', 'k', 'v', 'o', 'down'] as const)
    expect(gguf.layer(1, part)).toEqual(safetensors.layer(1, part));
  expect(gguf.part('head')).toEqual(safetensors.part('head'));
});

test('shards are one model', () => {
  const [sharded, whole] = [modelWeights('tiny-llama-sharded'), modelWeights('tiny-llama')];
  for (const part of ['q', 'down', 'mlpNorm'] as const)
    expect(sharded.layer(0, part)).toEqual(whole.layer(0, part));
});

test('the head of a tied model is its embedding, and needs no tensor of its own', () => {
  const weights = modelWeights('tiny-qwen2');
  expect(openWeights(fixture('models', 'tiny-qwen2')).tensors.has('lm_head.weight')).toBe(false);
  expect(weights.part('head')).toEqual(weights.part('embedding'));
});

test('an untied model without a head is refused', () => {
  expect(variant('tiny-llama', (tensors) => tensors.delete('lm_head.weight'))).toThrow(
    expect.objectContaining({
      code: 'file_format_invalid',
      message: expect.stringContaining('tensor "lm_head.weight" is missing; expected [512,64]'),
    }),
  );
});

test('a wrong shape is refused with both shapes', () => {
  const name = 'model.layers.1.self_attn.k_proj.weight';
  const change = (tensors: Map<string, TensorInfo>) =>
    tensors.set(name, { ...tensors.get(name)!, shape: [64, 64] });
  expect(variant('tiny-llama', change)).toThrow(/k_proj\.weight" is \[64,64\], the config says \[32,64\]/);
});

test('a bias that the architecture does not add is refused, not dropped', () => {
  const change = (tensors: Map<string, TensorInfo>) =>
    tensors.set('model.layers.0.self_attn.o_proj.bias', {
      ...tensors.get('model.norm.weight')!,
      name: 'model.layers.0.self_attn.o_proj.bias',
    });
  expect(variant('tiny-llama', change)).toThrow(
    expect.objectContaining({ code: 'unsupported', message: expect.stringContaining('o_proj.bias') }),
  );
});
