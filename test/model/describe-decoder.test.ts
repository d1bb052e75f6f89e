import { describeDecoder } from '../../src/model/index.js';
import { ropeFrequencies } from '../../src/model/rope.js';
import { openWeights, type TensorInfo } from '../../src/weights/index.js';
import { fixture, readJson } from '../support/fixtures.js';
import { modelWeights } from '../support/model-weights.js';

const none = new Map<string, TensorInfo>();
const describeJson = (change: object, base = 'tiny-llama') =>
  describeDecoder({ configJson: { ...readJson('models', base, 'config.json'), ...change }, tensors: none });

const ggufOf = (change: Record<string, unknown>) => {
  const source = openWeights(fixture('gguf', 'tiny-llama-f32.gguf'));
  const metadata = new Map([...source.metadata, ...Object.entries(change)]);
  return describeDecoder({ gguf: metadata, tensors: source.tensors });
};

test('GGUF metadata and config.json describe the same model', () => {
  expect(ggufOf({})).toEqual(modelWeights('tiny-llama').config);
});

test.each([
  [{ model_type: 'mistral' }, 'architecture "mistral" is not supported; supported: llama, qwen2, qwen3'],
  [{ hidden_act: 'gelu' }, 'hidden_act "gelu" is not supported; supported: silu'],
  [{ attention_bias: true }, 'attention_bias true'],
  [{ mlp_bias: true }, 'mlp_bias true'],
  [{ sliding_window: 4096 }, 'sliding_window 4096'],
  [
    { rope_scaling: { rope_type: 'yarn', factor: 4 } },
    'rope type "yarn" is not supported; supported: default, llama3',
  ],
  [{ rope_scaling: { type: 'linear', factor: 2 } }, 'rope type "linear"'],
  [{ rope_parameters: { rope_type: 'dynamic', rope_theta: 1 } }, 'rope type "dynamic"'],
  [{ partial_rotary_factor: 0.5 }, 'partial_rotary_factor 0.5'],
  [{ quantization_config: { quant_method: 'gptq' } }, 'quantization_config'],
  [{ head_dim: 12 }, 'head size 12 is not supported; supported: multiples of 8'],
])('%j is refused by name', (change, message) => {
  expect(() => describeJson(change)).toThrow(
    expect.objectContaining({ code: 'unsupported', message: expect.stringContaining(message) }),
  );
});

test.each([
  [{ use_sliding_window: true }, 'use_sliding_window true'],
  [{ layer_types: ['full_attention', 'sliding_attention'] }, 'layer_types "sliding_attention"'],
])('%j of Qwen is refused by name', (change, message) => {
  expect(() => describeJson(change, 'tiny-qwen2')).toThrow(
    expect.objectContaining({ message: expect.stringContaining(message) }),
  );
});

test('a window that Qwen names but does not use is fine', () => {
  expect(describeJson({ sliding_window: 32768, use_sliding_window: false }, 'tiny-qwen2').architecture).toBe(
    'qwen2',
  );
});

test.each([
  [{ hidden_size: undefined }, 'config.json: "hidden_size" must be an integer of at least 1, not nothing'],
  [{ num_hidden_layers: 2.5 }, '"num_hidden_layers" must be an integer of at least 1, not 2.5'],
  [{ rms_norm_eps: '1e-5' }, '"rms_norm_eps" must be a number, not "1e-5"'],
  [{ eos_token_id: ['x'] }, '"eos_token_id" must be a token id or a list of them'],
  [{ num_key_value_heads: 3 }, '4 heads cannot share 3 key/value heads evenly'],
])('%j is an error that names the key', (change, message) => {
  expect(() => describeJson(change)).toThrow(
    expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining(message) }),
  );
});

test.each([
  [{ 'general.architecture': 'gemma3' }, 'architecture "gemma3"'],
  [{ 'llama.rope.scaling.type': 'yarn' }, 'llama.rope.scaling.type "yarn"'],
  [{ 'llama.attention.sliding_window': 1024 }, 'llama.attention.sliding_window 1024'],
  [{ 'llama.expert_count': 8 }, 'llama.expert_count 8'],
  [{ 'llama.rope.dimension_count': 8 }, 'llama.rope.dimension_count 8'],
])('GGUF with %j is refused by name', (change, message) => {
  expect(() => ggufOf(change)).toThrow(
    expect.objectContaining({ code: 'unsupported', message: expect.stringContaining(message) }),
  );
});

test('end tokens come from config and generation config, each once', () => {
  const configJson = { ...readJson('models', 'tiny-llama', 'config.json'), eos_token_id: 511 };
  const generationConfigJson = { eos_token_id: [511, 510] };
  expect(describeDecoder({ configJson, generationConfigJson, tensors: none }).eosTokenIds).toEqual([
    511, 510,
  ]);
});

test('stored rope factors divide the frequencies', () => {
  const settings = { headDim: 8, theta: 10_000 };
  const plain = ropeFrequencies({ ...settings, scaling: { kind: 'none' } });
  const storedFactors = Float32Array.of(1, 2, 4, 8);
  const divided = ropeFrequencies({ ...settings, scaling: { kind: 'stored' }, storedFactors });
  expect([...divided]).toEqual([...plain].map((value, at) => Math.fround(value / storedFactors[at]!)));
});
