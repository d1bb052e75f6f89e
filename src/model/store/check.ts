import { FileFormatError, InvalidInputError } from '../../errors.js';
import { createTokenizer } from '../../tokenizer/index.js';
import { jsonObject, readJsonFileSync } from '../../util/json-file.js';
import type { TensorSource } from '../../weights/index.js';
import { decoderWeights } from '../decoder-weights.js';
import { describeEncoder } from '../describe-encoder.js';
import { encoderWeights } from '../encoder-weights.js';
import { decoderConfig } from './describe.js';
import type { StoredModel } from './open.js';

/** Everything that must hold for the model to be used, looked at while it still lies aside. */
export async function checkModel(model: StoredModel): Promise<void> {
  const tokenizer = createTokenizer(await model.readTokenizer());
  const source = model.openWeights();
  try {
    const { vocabSize } =
      model.record.kind === 'decoder' ? checkDecoder(model, source) : checkEncoder(model, source);
    if (tokenizer.vocabSize > vocabSize)
      throw new FileFormatError(
        `${model.record.title}: the tokenizer has ${tokenizer.vocabSize} tokens, the embedding table ${vocabSize}`,
      );
  } finally {
    source.close();
  }
}

function checkDecoder(model: StoredModel, source: TensorSource): { vocabSize: number } {
  const config = decoderConfig(source, {
    config: model.file('config') ?? undefined,
    generationConfig: model.file('generationConfig') ?? undefined,
  });
  decoderWeights(config, source);
  return config;
}

function checkEncoder(model: StoredModel, source: TensorSource): { vocabSize: number } {
  const config = describeEncoder(readJsonFileSync(model.file('config') as string, jsonObject));
  encoderWeights(config, source);
  const maxTokens = model.record.embedder?.maxTokens ?? 0;
  if (maxTokens > config.maxPositions)
    throw new InvalidInputError(
      `${model.record.title}: ${maxTokens} tokens an input, but the model has ${config.maxPositions} positions`,
    );
  return config;
}
