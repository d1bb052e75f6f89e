// What a model's own settings say it is. Says no early, by name, with the list of what is supported.

import { FileFormatError, UnsupportedError } from '../../errors.js';
import { jsonObject, readJsonFileSync } from '../../util/json-file.js';
import type { TensorSource } from '../../weights/index.js';
import { DECODER_ARCHITECTURES, type DecoderConfig } from '../decoder-config.js';
import { describeDecoder } from '../describe-decoder.js';

export type ModelKind = 'decoder' | 'encoder';

const ENCODER_ARCHITECTURES: readonly string[] = ['bert'];

/**
 * @param architecture `model_type` of config.json or `general.architecture` of a GGUF file
 * @throws {UnsupportedError} with the name and the list of supported ones
 */
export function kindOf(architecture: unknown, format: 'gguf' | 'safetensors', where: string): ModelKind {
  if (DECODER_ARCHITECTURES.some((name) => name === architecture)) return 'decoder';
  if (format === 'safetensors' && ENCODER_ARCHITECTURES.includes(String(architecture))) return 'encoder';
  const decoders = `decoders ${DECODER_ARCHITECTURES.join(', ')}`;
  const encoders = `encoders ${ENCODER_ARCHITECTURES.join(', ')} (as safetensors)`;
  throw new UnsupportedError(
    `${where}: architecture ${JSON.stringify(architecture) ?? '(none)'} is not supported; supported are ${decoders}; ${encoders}`,
  );
}

/** @param files paths of config.json (safetensors) and generation_config.json */
export function decoderConfig(
  source: TensorSource,
  files: { readonly config?: string | undefined; readonly generationConfig?: string | undefined },
): DecoderConfig {
  const { tensors, metadata } = source;
  if (source.format === 'gguf') return describeDecoder({ gguf: metadata, tensors });
  if (files.config === undefined) throw new FileFormatError('safetensors weights need a config.json');
  return describeDecoder({
    configJson: readJsonFileSync(files.config, jsonObject),
    ...(files.generationConfig === undefined
      ? {}
      : { generationConfigJson: readJsonFileSync(files.generationConfig, jsonObject) }),
    tensors,
  });
}
