import { type Config, homeFolder } from '../../config/index.js';
import { UnsupportedError } from '../../errors.js';
import { ensureModel, type StoredModel } from '../../model/index.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import type { OnProgress } from '../../util/progress.js';
import type { EmbedderConventions } from '../../weights/index.js';

/** Raised when the same model would give other vectors: another way of putting texts in or of pooling. */
const EMBEDDING_VERSION = 1;

/** Names an imported embedding model. Plain data: it goes to worker threads. */
export interface EncoderSource {
  /** Folder of models. */
  readonly home: string;
  readonly id: string;
  /** sha256 of everything that decides a vector. */
  readonly digest: string;
}

export interface LocateOptions {
  readonly onProgress?: OnProgress;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * The configured embedding model, fetched and imported when it is not there.
 * @throws {DownloadError} it cannot be fetched
 * @throws {UnsupportedError} it is no encoder
 */
export async function locateEncoder(
  config: Pick<Config, 'model' | 'paths'>,
  options: LocateOptions = {},
): Promise<EncoderSource> {
  const home = homeFolder(config);
  return encoderSource(home, await ensureModel(config.model.embedder, home, options));
}

export function encoderSource(home: string, model: StoredModel): EncoderSource {
  const { id, digest } = model.record;
  conventionsOf(model);
  return { home, id, digest: sha256Hex(canonicalJson({ version: EMBEDDING_VERSION, model: digest })) };
}

/** @throws {UnsupportedError} the model is no encoder */
export function conventionsOf(model: StoredModel): EmbedderConventions {
  const { id, kind, embedder } = model.record;
  if (embedder === null)
    throw new UnsupportedError(`model "${id}": expected an encoder for embedding, it is a ${kind}`);
  return embedder;
}
