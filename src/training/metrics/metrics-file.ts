// metrics.jsonl of a run: one line a step. Written before the step is committed, cut back when a run goes on.

import { existsSync } from 'node:fs';
import { FileFormatError } from '../../errors.js';
import { writeFileAtomic } from '../../util/atomic-file.js';
import { openJsonLines, readJsonLines } from '../../util/json-lines.js';

export interface MetricsRow {
  readonly step: number;
  readonly [figure: string]: number;
}

/**
 * Rows of a metrics file in order; none where there is no file.
 * @throws {FileFormatError} a line is no row
 */
export async function readMetrics(path: string): Promise<MetricsRow[]> {
  const rows: MetricsRow[] = [];
  if (!existsSync(path)) return rows;
  for await (const { value, line } of readJsonLines(path)) {
    if (typeof (value as MetricsRow | null)?.step !== 'number')
      throw new FileFormatError(`${path}, line ${line}: expected an object with a number "step"`);
    rows.push(value as MetricsRow);
  }
  return rows;
}

export interface MetricsFile {
  append(row: MetricsRow): Promise<void>;
  close(): Promise<void>;
}

/** Opens the file for a run that goes on after `step`: what later rows say never happened. */
export async function openMetricsFile(path: string, step: number): Promise<MetricsFile> {
  const kept = (await readMetrics(path)).filter((row) => row.step <= step);
  await writeFileAtomic(path, kept.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return openJsonLines(path);
}
