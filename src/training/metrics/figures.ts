// Where the figures of a run go: metrics.jsonl for tools of our own, an event file for TensorBoard.

import { type EventFile, openEventFile } from './event-file.js';
import { type MetricsFile, type MetricsRow, openMetricsFile } from './metrics-file.js';

export interface RunFigures {
  /** A step, before it is committed. */
  step(row: MetricsRow): Promise<void>;
  validation(row: MetricsRow): Promise<void>;
  close(): Promise<void>;
}

/** @param step  the run goes on after it; figures of later steps are taken back */
export async function openFigures(folder: string, metricsFile: string, step: number): Promise<RunFigures> {
  const rows: MetricsFile = await openMetricsFile(metricsFile, step);
  const events: EventFile = await openEventFile(folder, step + 1);
  const write = (part: string, { step: at, ...figures }: MetricsRow): Promise<void> =>
    events.write(
      at,
      Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${part}/${name}`, value])),
    );
  return {
    async step(row) {
      await rows.append(row);
      await write('train', row);
    },
    validation: (row) => write('validation', row),
    close: async () => void (await Promise.all([rows.close(), events.close()])),
  };
}
