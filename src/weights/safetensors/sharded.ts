// Models in several safetensors files, joined by an index that maps each tensor to its shard.

import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { FileFormatError, NotFoundError } from '../../errors.js';
import { parseStrictJson, StrictJsonError } from '../strict-json.js';
import type { TensorInfo, TensorSource } from '../tensor-source.js';
import { openSafetensorsFile, type SafetensorsSource } from './reader.js';

/** Largest index read: far above real ones (a few MB), far below what would hurt. */
const MAX_INDEX_BYTES = 256 * 1024 * 1024;

/** Shard file names of an index, each once, in order of first use. */
function readShardIndex(indexFile: string): { tensorShards: Map<string, string>; shards: string[] } {
  const weightMap = parseIndex(indexFile);
  const tensorShards = new Map<string, string>();
  for (const [name, shard] of weightMap) {
    if (typeof shard !== 'string' || !isPlainName(shard))
      throw new FileFormatError(
        `${indexFile}: tensor "${name}" names shard ${JSON.stringify(shard)}; expected a .safetensors file name without a folder`,
      );
    tensorShards.set(name, shard);
  }
  return { tensorShards, shards: [...new Set(tensorShards.values())] };
}

function isPlainName(name: string): boolean {
  return name === basename(name) && /^[^/\\\u0000]+\.safetensors$/.test(name);
}

function parseIndex(indexFile: string): Map<string, unknown> {
  let text: string;
  try {
    const bytes = readFileSync(indexFile);
    if (bytes.length > MAX_INDEX_BYTES)
      throw new FileFormatError(`${indexFile}: ${bytes.length} bytes, the limit is ${MAX_INDEX_BYTES}`);
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    if (cause instanceof FileFormatError) throw cause;
    throw new FileFormatError(`${indexFile}: cannot be read: ${(cause as Error).message}`, { cause });
  }
  try {
    const index = parseStrictJson(text);
    const weightMap = index instanceof Map ? index.get('weight_map') : undefined;
    if (!(weightMap instanceof Map) || weightMap.size === 0)
      throw new FileFormatError(`${indexFile}: expected an object with a non-empty "weight_map"`);
    return weightMap;
  } catch (cause) {
    if (!(cause instanceof StrictJsonError)) throw cause;
    throw new FileFormatError(`${indexFile}: ${cause.message} at offset ${cause.offset}`, { cause });
  }
}

/**
 * Opens the shards of an index as one source. The index decides which tensors there are.
 * @throws {FileFormatError} a missing shard, a shard outside the folder, a tensor that its shard lacks
 */
export function openShardedSafetensors(indexFile: string): TensorSource {
  const { tensorShards, shards } = readShardIndex(indexFile);
  const sources = new Map<string, SafetensorsSource>();
  const close = (): void => {
    for (const source of sources.values()) source.close();
  };
  try {
    for (const shard of shards) sources.set(shard, openShard(indexFile, shard));
    return joinShards(indexFile, tensorShards, sources, close);
  } catch (error) {
    close();
    throw error;
  }
}

function openShard(indexFile: string, shard: string): SafetensorsSource {
  try {
    return openSafetensorsFile(join(dirname(indexFile), shard));
  } catch (cause) {
    if (!(cause instanceof NotFoundError)) throw cause;
    throw new FileFormatError(`${indexFile}: shard ${shard} is missing beside it`, { cause });
  }
}

function joinShards(
  indexFile: string,
  tensorShards: ReadonlyMap<string, string>,
  sources: ReadonlyMap<string, SafetensorsSource>,
  close: () => void,
): TensorSource {
  const tensors = new Map<string, TensorInfo>();
  const metadata = new Map<string, unknown>();
  for (const source of sources.values()) for (const [key, value] of source.metadata) metadata.set(key, value);
  const holder = (name: string): TensorSource => {
    const shard = tensorShards.get(name);
    if (shard === undefined) throw new NotFoundError(`${indexFile} lists no tensor "${name}"`);
    return sources.get(shard) as TensorSource;
  };
  for (const [name, shard] of tensorShards) {
    const source = sources.get(shard) as SafetensorsSource;
    const tensor = source.tensors.get(name);
    if (tensor) tensors.set(name, tensor);
    else if (!source.skipped.has(name))
      throw new FileFormatError(`${indexFile}: tensor "${name}" is not in shard ${shard}`);
  }
  return {
    format: 'safetensors',
    tensors,
    metadata,
    readFloat32: (name) => holder(name).readFloat32(name),
    readRaw: (name) => holder(name).readRaw(name),
    close,
  };
}
