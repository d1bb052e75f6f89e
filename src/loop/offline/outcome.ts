// How a run ends: the adapter to use lies in `adapter/` of its folder.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exportAdapter } from '../../training/index.js';
import type { RunFolder } from './run-folder.js';

export interface TrainingOutcome {
  readonly steps: number;
  /** Step, folder and version of the checkpoint that the run gives. */
  readonly step: number;
  readonly folder: string;
  readonly version: string;
  /** PEFT folder with its adapter alone; null where whole weights were trained. */
  readonly adapter: string | null;
}

/** Copies the adapter of a checkpoint to where users look for it, values unchanged. */
export async function handOver(
  run: RunFolder,
  steps: number,
  checkpoint: Pick<TrainingOutcome, 'step' | 'folder' | 'version'>,
): Promise<TrainingOutcome> {
  const { step, folder, version } = checkpoint;
  if (!existsSync(join(folder, 'adapter_config.json')))
    return { steps, step, folder, version, adapter: null };
  const adapter = join(run.folder, 'adapter');
  await exportAdapter(folder, adapter, 'F32');
  return { steps, step, folder, version, adapter };
}
