// From an encoder's config.json to an EncoderConfig; what cannot be computed is refused by name.

import type { EncoderConfig } from './encoder-config.js';
import { refuse, settingsOf } from './settings.js';

/**
 * Reads what an encoder is.
 * @param configJson  a parsed `config.json`
 * @throws {UnsupportedError} an architecture or option that this version cannot compute, with what it can
 * @throws {InvalidInputError} a setting is missing or of the wrong kind
 */
export function describeEncoder(configJson: object): EncoderConfig {
  const where = 'config.json';
  const settings = settingsOf(new Map(Object.entries(configJson)), where);
  const architecture = settings.text('model_type');
  if (architecture !== 'bert') refuse(where, 'encoder architecture', architecture, 'bert');
  const only = (key: string, value: string): void => {
    const found = settings.text(key, value);
    if (found !== value) refuse(where, key, found, value);
  };
  only('hidden_act', 'gelu');
  only('position_embedding_type', 'absolute');
  if (settings.flag('is_decoder', false)) refuse(where, 'is_decoder', true, 'false');
  const config: EncoderConfig = {
    architecture,
    hiddenSize: settings.count('hidden_size'),
    intermediateSize: settings.count('intermediate_size'),
    layers: settings.count('num_hidden_layers'),
    heads: settings.count('num_attention_heads'),
    vocabSize: settings.count('vocab_size'),
    maxPositions: settings.count('max_position_embeddings'),
    tokenTypes: settings.count('type_vocab_size', 2),
    normEpsilon: settings.number('layer_norm_eps'),
  };
  if (config.hiddenSize % config.heads !== 0)
    refuse(where, 'num_attention_heads', config.heads, `divisors of hidden_size ${config.hiddenSize}`);
  return config;
}
