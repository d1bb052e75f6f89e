// An adapter handed on: its PEFT folder without the state of the run, smaller where half precision is enough.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FileFormatError } from '../../errors.js';
import { writeFileAtomic } from '../../util/atomic-file.js';
import { openSafetensorsFile, type PlainType, writeSafetensors } from '../../weights/index.js';
import { ADAPTER_CONFIG, ADAPTER_WEIGHTS } from '../checkpoint/trained-files.js';

/**
 * Copies an adapter into a folder of its own.
 * @param adapter    PEFT folder, such as a checkpoint
 * @param baseModel  replaces the name of the base model, which PEFT may fetch by it
 * @throws {FileFormatError} adapter_config.json is not JSON
 */
export async function exportAdapter(
  adapter: string,
  output: string,
  type: PlainType,
  baseModel?: string,
): Promise<void> {
  const path = join(adapter, ADAPTER_CONFIG);
  let config: object;
  try {
    config = JSON.parse(await readFile(path, 'utf8')) as object;
  } catch (cause) {
    throw new FileFormatError(`${path}: ${(cause as Error).message}`, { cause });
  }
  const source = openSafetensorsFile(join(adapter, ADAPTER_WEIGHTS));
  try {
    const tensors = [...source.tensors.values()].map(({ name, shape }) => ({
      name,
      shape,
      type,
      data: () => source.readFloat32(name),
    }));
    await writeSafetensors(join(output, ADAPTER_WEIGHTS), tensors, { format: 'pt' });
  } finally {
    source.close();
  }
  const named = baseModel === undefined ? config : { ...config, base_model_name_or_path: baseModel };
  await writeFileAtomic(join(output, ADAPTER_CONFIG), `${JSON.stringify(named, null, 2)}\n`);
}
