import { statSync } from 'node:fs';
import { join } from 'node:path';
import { NotFoundError } from '../errors.js';
import { openGguf } from './gguf/reader.js';
import { MAGIC } from './gguf/types.js';
import { openRangedFile } from './ranged-file.js';
import { openSafetensorsFile } from './safetensors/reader.js';
import { openShardedSafetensors } from './safetensors/sharded.js';
import type { TensorSource } from './tensor-source.js';

export const SINGLE_NAME = 'model.safetensors';
export const INDEX_NAME = 'model.safetensors.index.json';

/**
 * Opens weights: a GGUF or safetensors file, an index of shards, or a folder that holds model.safetensors or
 * such an index. A file's format is told by its first bytes, not by its name.
 * @throws {NotFoundError} nothing there; {FileFormatError}, {UnsupportedError} as the readers do
 */
export function openWeights(path: string): TensorSource {
  const status = statSync(path, { throwIfNoEntry: false });
  if (!status) throw new NotFoundError(`no weights at ${path}`);
  if (!status.isDirectory()) {
    if (path.endsWith('.index.json')) return openShardedSafetensors(path);
    return isGguf(path) ? openGguf(path) : openSafetensorsFile(path);
  }
  for (const name of [INDEX_NAME, SINGLE_NAME])
    if (statSync(join(path, name), { throwIfNoEntry: false })) return openWeights(join(path, name));
  throw new NotFoundError(`${path} holds neither ${SINGLE_NAME} nor ${INDEX_NAME}`);
}

/** Whether a file begins as GGUF does. */
export function isGguf(path: string): boolean {
  const file = openRangedFile(path);
  try {
    return file.size >= 4 && String.fromCharCode(...file.read(0, 4, 'magic')) === MAGIC;
  } finally {
    file.close();
  }
}
