// A curve of the reward, or of the loss, in a few lines of a terminal, drawn again at every step.

import type { MetricsRow } from '../training/index.js';
import { mean } from '../util/mean.js';

export interface LiveChart {
  draw(rows: readonly MetricsRow[]): void;
  /** Takes it away, so that a line can be written. */
  clear(): void;
}

const HEIGHT = 6;
const LEVELS = ' ▁▂▃▄▅▆▇█';
const LABEL_WIDTH = 9;

export function liveChart(terminal: NodeJS.WriteStream): LiveChart {
  let drawn = 0;
  const clear = (): void => {
    if (drawn === 0) return;
    terminal.moveCursor(0, -drawn);
    terminal.cursorTo(0);
    terminal.clearScreenDown();
    drawn = 0;
  };
  return {
    clear,
    draw(rows) {
      clear();
      const lines = chartLines(rows, (terminal.columns ?? 80) - LABEL_WIDTH - 1);
      if (lines.length === 0) return;
      terminal.write(`${lines.join('\n')}\n`);
      drawn = lines.length;
    },
  };
}

/**
 * Columns of blocks, oldest step left; each column is the mean of the steps that share it.
 * @returns the lines from top to bottom, `HEIGHT` of them; none for fewer than two steps
 */
export function chartLines(rows: readonly MetricsRow[], width: number): string[] {
  const figure = rows.some((row) => row.reward !== undefined) ? 'reward' : 'loss';
  const values = rows.flatMap((row) => (row[figure] === undefined ? [] : [row[figure]]));
  if (values.length < 2 || width < 2) return [];
  const columns = squeeze(values, width);
  const [low, high] = [Math.min(...columns), Math.max(...columns)];
  const heights = columns.map((value) => (high === low ? 0.5 : (value - low) / (high - low)) * HEIGHT);
  return Array.from({ length: HEIGHT }, (_, line) => {
    const floor = HEIGHT - 1 - line;
    const bars = heights.map((height) => LEVELS[Math.round(Math.min(1, Math.max(0, height - floor)) * 8)]);
    const label = line === 0 ? high.toPrecision(3) : line === HEIGHT - 1 ? low.toPrecision(3) : '';
    const name = line === 1 ? figure : label;
    return `${name.padStart(LABEL_WIDTH)} ${bars.join('')}`;
  });
}

function squeeze(values: readonly number[], width: number): number[] {
  const columns = Math.min(width, values.length);
  return Array.from({ length: columns }, (_, column) => {
    const from = Math.floor((column * values.length) / columns);
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / columns));
    return mean(values.slice(from, to));
  });
}
