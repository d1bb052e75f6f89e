// Results of runs in files, one a run: what is there need not be run again.

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MetricsRow } from '#searchloop/training/index.js';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import type { TinyFigures } from '../tiny-world/figures.js';
import type { CurvePoint } from '../tiny-world/run.js';

export interface RunResult {
  readonly variant: string;
  readonly seed: number;
  /** Of everything that decides the run. */
  readonly settingsDigest: string;
  readonly curve: readonly CurvePoint[];
  readonly final: TinyFigures;
  readonly emptyIndex: TinyFigures;
  readonly version: string;
  /** Figures of training, step by step. */
  readonly rows: readonly MetricsRow[];
  /** Rollouts, updates and evaluations together. */
  readonly minutes: number;
  /** Runs that shared the machine, this one too. */
  readonly atOnce: number;
}

const fileOf = (folder: string, variant: string, seed: number): string =>
  join(folder, 'results', `${variant}-seed-${seed}.json`);

/** The result of a run with these settings; null where there is none. */
export function readResult(
  folder: string,
  variant: string,
  seed: number,
  settingsDigest: string,
): RunResult | null {
  let text: string;
  try {
    text = readFileSync(fileOf(folder, variant, seed), 'utf8');
  } catch {
    return null;
  }
  const result = JSON.parse(text) as RunResult;
  return result.settingsDigest === settingsDigest ? result : null;
}

export async function keepResult(folder: string, result: RunResult): Promise<void> {
  mkdirSync(join(folder, 'results'), { recursive: true });
  await writeFileAtomic(fileOf(folder, result.variant, result.seed), `${JSON.stringify(result)}\n`);
}
