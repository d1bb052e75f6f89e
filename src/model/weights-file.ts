// One file of weights that graphs refer to, and its table of contents. Written aside and renamed when whole.

import { createHash, type Hash, randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { GraphBuilder, Value } from '../graph/index.js';
import type { ElementType } from '../runtime/index.js';
import { syncFolder } from '../util/atomic-file.js';
import { isRunning } from '../util/is-running.js';

/** Tensors start on pages, so that onnxruntime can map the file instead of reading it. */
const ALIGNMENT = 4096;

export interface StoredTensor {
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly byteOffset: number;
  readonly byteLength: number;
}

export interface WeightsFile {
  /** File name, without its folder. */
  readonly file: string;
  readonly byteLength: number;
  readonly sha256: string;
  readonly tensors: Readonly<Record<string, StoredTensor>>;
}

export interface WeightsWriter {
  add(
    name: string,
    type: ElementType,
    shape: readonly number[],
    data: Float32Array | Uint8Array,
  ): Promise<void>;
  /** A second name for a tensor that was added, perhaps seen in another shape. */
  alias(name: string, target: string, shape?: readonly number[]): void;
  /** Makes the file appear under its name. */
  finish(): Promise<WeightsFile>;
  /** Drops what was written. */
  abort(): Promise<void>;
}

/** Starts a weights file; what killed writers of the same file left behind is removed. */
export async function createWeightsFile(path: string): Promise<WeightsWriter> {
  await mkdir(dirname(path), { recursive: true });
  await removeLeftovers(path);
  const temporary = `${path}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`;
  const handle = await open(temporary, 'wx');
  const hash = createHash('sha256');
  const tensors: Record<string, StoredTensor> = {};
  let end = 0;
  return {
    async add(name, type, shape, data) {
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      const padding = new Uint8Array((ALIGNMENT - (end % ALIGNMENT)) % ALIGNMENT);
      await append(handle, hash, padding);
      await append(handle, hash, bytes);
      tensors[name] = {
        type,
        shape,
        byteOffset: end + padding.byteLength,
        byteLength: bytes.byteLength,
      };
      end += padding.byteLength + bytes.byteLength;
    },
    alias(name, target, shape) {
      const tensor = tensors[target] as StoredTensor;
      tensors[name] = { ...tensor, shape: shape ?? tensor.shape };
    },
    async finish() {
      await handle.sync();
      await handle.close();
      await rename(temporary, path);
      await syncFolder(dirname(path));
      return { file: basename(path), byteLength: end, sha256: hash.digest('hex'), tensors };
    },
    async abort() {
      await handle.close();
      await rm(temporary, { force: true });
    },
  };
}

async function append(handle: FileHandle, hash: Hash, bytes: Uint8Array): Promise<void> {
  hash.update(bytes);
  for (let done = 0; done < bytes.byteLength; )
    done += (await handle.write(bytes, done, Math.min(bytes.byteLength - done, 1 << 26))).bytesWritten;
}

async function removeLeftovers(path: string): Promise<void> {
  for (const name of await readdir(dirname(path))) {
    const writer = name.startsWith(`${basename(path)}.`) && /\.(\d+)-[0-9a-f]{8}\.tmp$/.exec(name);
    if (writer && !isRunning(Number(writer[1]))) await rm(join(dirname(path), name), { force: true });
  }
}

/** A stored tensor as a constant of a graph. */
export function storedConstant(graph: GraphBuilder, weights: WeightsFile, name: string): Value {
  const tensor = weights.tensors[name];
  if (tensor === undefined) throw new RangeError(`the weights file has no tensor "${name}"`);
  const { type, shape, byteOffset, byteLength } = tensor;
  return graph.external(name, type, shape, { file: weights.file, byteOffset, byteLength });
}
