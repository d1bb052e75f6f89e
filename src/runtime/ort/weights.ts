// Weights that several sessions share. onnxruntime shares what it packs only for tensors that it is given from
// outside, so the file is mapped here and each tensor handed over; after packing the pages are not needed again.

import { closeSync, fstatSync, openSync } from 'node:fs';
import { FileFormatError, NotFoundError, RuntimeError } from '../../errors.js';
import type { SharedWeights, WeightTensor } from '../session.js';
import type { Handle } from './api.js';
import type { Context } from './context.js';
import { elementCode, tensorBytes } from './element-type.js';
import type { FileMapping } from './file-mapping.js';
import { enter, strike } from './ledger.js';

interface Shared {
  readonly tensors: ReadonlyMap<string, Handle>;
  readonly prepacked: Handle;
  /** Sessions, and the opener until it closes. */
  users: number;
  readonly forgetPages: () => void;
  readonly free: () => void;
}

const opened = new WeakMap<SharedWeights, Shared>();

/** @see OnnxRuntime.openWeights */
export function openWeights(
  context: Context,
  file: string,
  tensors: Readonly<Record<string, WeightTensor>>,
): SharedWeights {
  const { api, library } = context;
  const mapping = library.mapFile;
  if (mapping === null) return { close() {} };
  const { address, length } = mapFile(mapping, file, tensors);
  const handles = new Map<string, Handle>();
  for (const [name, tensor] of Object.entries(tensors))
    handles.set(name, tensorAt(context, address + BigInt(tensor.byteOffset), tensor));
  const prepacked = api.createPrepackedWeights();
  enter('prepacked', prepacked);
  const shared: Shared = {
    tensors: handles,
    prepacked,
    users: 1,
    forgetPages: () => mapping.forget(address, length),
    free() {
      strike(prepacked);
      api.releasePrepackedWeights(prepacked);
      for (const handle of handles.values()) api.releaseValue(handle);
      mapping.unmap(address, length);
    },
  };
  let open = true;
  const weights: SharedWeights = {
    close() {
      if (open) release(shared);
      open = false;
    },
  };
  opened.set(weights, shared);
  return weights;
}

const tensorAt = ({ api, memory }: Context, address: Handle, { type, shape }: WeightTensor): Handle =>
  api.createTensor(
    memory,
    address,
    tensorBytes(type, shape),
    BigInt64Array.from(shape, BigInt),
    shape.length,
    elementCode(type),
  );

function release(shared: Shared): void {
  if (--shared.users === 0) shared.free();
}

export interface UsedWeights {
  /** Container of packed weights to make the session with. */
  readonly prepacked: Handle;
  /** To be called when the session is made: what was packed is not read again. */
  readonly packed: () => void;
  /** To be called when the session is closed. */
  readonly done: () => void;
}

/**
 * Puts shared weights into a session's options.
 * @returns null where nothing is shared
 * @throws {RuntimeError} the weights are closed
 */
export function useWeights(
  { api }: Context,
  sessionOptions: Handle,
  weights: SharedWeights,
): UsedWeights | null {
  const shared = opened.get(weights);
  // Nothing was mapped on this system.
  if (shared === undefined) return null;
  if (shared.users === 0) throw new RuntimeError('the shared weights are closed');
  for (const [name, handle] of shared.tensors) api.addInitializer(sessionOptions, name, handle);
  shared.users++;
  return { prepacked: shared.prepacked, packed: shared.forgetPages, done: () => release(shared) };
}

function mapFile({ map }: FileMapping, file: string, tensors: Readonly<Record<string, WeightTensor>>) {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (cause) {
    throw new NotFoundError(`weights file ${file} cannot be opened: ${(cause as Error).message}`, { cause });
  }
  try {
    const length = fstatSync(descriptor).size;
    for (const [name, { type, shape, byteOffset }] of Object.entries(tensors)) {
      const end = byteOffset + tensorBytes(type, shape);
      if (!(byteOffset >= 0 && end <= length))
        throw new FileFormatError(
          `${file}: tensor "${name}" spans bytes ${byteOffset} to ${end} of ${length}`,
        );
    }
    return { address: map(descriptor, length), length };
  } finally {
    closeSync(descriptor);
  }
}
