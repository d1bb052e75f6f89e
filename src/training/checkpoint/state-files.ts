// What a run needs beside the trained values to go on as if it had never stopped: moments and counters.

import { join } from 'node:path';
import { z } from 'zod';
import { FileFormatError } from '../../errors.js';
import { readJsonFileIfAny, writeJsonFile } from '../../util/json-file.js';
import { openSafetensorsFile, writeSafetensors } from '../../weights/index.js';

const OPTIMIZER_NAME = 'optimizer.safetensors';
const STATE_NAME = 'state.json';

const stateSchema = z.strictObject({
  state: z.string().describe('Sum over all trained values.'),
  updates: z.record(z.string(), z.number().int().min(0)).describe('Optimizer updates of each part.'),
  carried: z.record(z.string(), z.unknown()).describe('What the run itself carries on.'),
});

export type TrainerState = z.infer<typeof stateSchema>;

/** Whether a critic was trained beside the policy. */
export const holdsCritic = ({ updates }: Pick<TrainerState, 'updates'>): boolean => 'critic' in updates;

export interface NamedArray {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

export async function writeState(
  folder: string,
  state: TrainerState,
  arrays: readonly NamedArray[],
): Promise<void> {
  await writeSafetensors(
    join(folder, OPTIMIZER_NAME),
    arrays.map(({ name, shape, values }) => ({ name, shape, type: 'F32', data: () => values })),
  );
  await writeJsonFile(join(folder, STATE_NAME), state);
}

/** @throws {FileFormatError} the file is missing or not what `writeState` writes */
export async function readState(folder: string): Promise<TrainerState> {
  const path = join(folder, STATE_NAME);
  const state = await readJsonFileIfAny(path, stateSchema);
  if (state === null) throw new FileFormatError(`${path} does not exist`);
  return state;
}

/**
 * Fills arrays by name.
 * @throws {FileFormatError} one is missing or has another size
 */
export function readArrays(folder: string, arrays: readonly NamedArray[]): void {
  const path = join(folder, OPTIMIZER_NAME);
  const source = openSafetensorsFile(path);
  try {
    for (const { name, shape, values } of arrays) {
      const stored = source.tensors.get(name)?.shape.join(',');
      if (stored !== shape.join(','))
        throw new FileFormatError(
          `${path}: tensor "${name}" is ${stored === undefined ? 'missing' : `[${stored}]`}, expected [${shape}]`,
        );
      values.set(source.readFloat32(name));
    }
  } finally {
    source.close();
  }
}
