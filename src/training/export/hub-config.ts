// config.json and generation_config.json as transformers reads them.

import { UnsupportedError } from '../../errors.js';
import type { DecoderArchitecture, DecoderConfig } from '../../model/index.js';

const CLASSES: Readonly<Record<DecoderArchitecture, string>> = {
  llama: 'LlamaForCausalLM',
  qwen2: 'Qwen2ForCausalLM',
  qwen3: 'Qwen3ForCausalLM',
};

const DTYPES = { F32: 'float32', F16: 'float16', BF16: 'bfloat16' } as const;

/**
 * In the spelling of transformers 4, which version 5 reads too.
 * @throws {UnsupportedError} rotary factors that only a GGUF file can hold
 */
export function hubConfig(config: DecoderConfig, type: keyof typeof DTYPES): Record<string, unknown> {
  const eos = config.eosTokenIds;
  return {
    architectures: [CLASSES[config.architecture]],
    model_type: config.architecture,
    hidden_act: 'silu',
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    vocab_size: config.vocabSize,
    max_position_embeddings: config.maxPositions,
    rms_norm_eps: config.normEpsilon,
    rope_theta: config.ropeTheta,
    rope_scaling: ropeScaling(config),
    tie_word_embeddings: config.tiedHead,
    attention_bias: config.architecture === 'qwen2' ? undefined : config.qkvBias,
    attention_dropout: 0,
    initializer_range: 0.02,
    use_cache: true,
    bos_token_id: config.bosTokenId,
    eos_token_id: eos.length === 1 ? eos[0] : [...eos],
    torch_dtype: DTYPES[type],
  };
}

export function generationConfig({ bosTokenId, eosTokenIds }: DecoderConfig): Record<string, unknown> {
  return { bos_token_id: bosTokenId, eos_token_id: [...eosTokenIds] };
}

function ropeScaling({ ropeScaling: scaling }: DecoderConfig): Record<string, unknown> | null {
  if (scaling.kind === 'none') return null;
  if (scaling.kind === 'stored')
    throw new UnsupportedError(
      'this model came from a GGUF file that stores its rotary factors, and config.json has no place for them',
    );
  return {
    rope_type: 'llama3',
    factor: scaling.factor,
    low_freq_factor: scaling.lowFrequencyFactor,
    high_freq_factor: scaling.highFrequencyFactor,
    original_max_position_embeddings: scaling.originalPositions,
  };
}
