import { join } from 'node:path';
import { importModel } from '../../../src/model/index.js';
import { type EncoderSource, encoderSource } from '../../../src/retrieval/embedder/encoder-source.js';
import type { EmbedderConventions } from '../../../src/weights/index.js';
import { fixture } from '../../support/fixtures.js';

/** A real encoder of 64 dimensions with random weights, imported into `home` under `id`. */
export async function importTinyEncoder(
  home: string,
  id = 'tiny-bert',
  conventions: Partial<EmbedderConventions> = {},
): Promise<EncoderSource> {
  const embedder = { pooling: 'mean' as const, normalise: true, maxTokens: 48, ...conventions };
  const model = await importModel(fixture('models', 'tiny-bert'), home, { id, embedder });
  return encoderSource(home, model);
}

export const homeOf = (folder: string): string => join(folder, 'home');
