// The curve of a run in a terminal: what stands where, and that it goes before the next one comes.

import { chartLines, liveChart } from '../../src/cli/live-chart.js';
import type { MetricsRow } from '../../src/training/index.js';

const rewards = (...values: number[]): MetricsRow[] => values.map((reward, step) => ({ step, reward }));
/** Columns without the label. */
const bars = (lines: readonly string[]): string[] => lines.map((line) => line.slice(10));

test('steps go from left to right, and the highest value fills its column', () => {
  const lines = chartLines(rewards(0, 0.5, 1), 40);
  expect(lines.map((line) => line.trimEnd())).toEqual([
    '     1.00   █',
    '   reward   █',
    '            █',
    '           ██',
    '           ██',
    '     0.00  ██',
  ]);
  // Half a block above the third of six.
  expect(bars(chartLines(rewards(0, 7, 12), 40)).map((row) => row[1])).toEqual([
    ' ',
    ' ',
    '▄',
    '█',
    '█',
    '█',
  ]);
});

test('more steps than columns share them, each a mean', () => {
  const lines = chartLines(rewards(0, 2, 3, 5, 0, 0), 3);
  expect(bars(lines)[0]).toBe(' █ ');
  expect(lines[0]).toMatch(/^ +4\.00 /);
  expect(lines.at(-1)).toMatch(/^ +0\.00 /);
});

test('the reward where there is one, else the loss; steps without it are passed over; nothing for one step', () => {
  const loss: MetricsRow[] = [{ step: 0, loss: 2 }, { step: 1 }, { step: 2, loss: 1 }];
  expect(chartLines(loss, 40)[1]).toMatch(/^ +loss /);
  expect(bars(chartLines(loss, 40))[0]).toBe('█ ');
  expect(chartLines([...loss, ...rewards(1, 2)], 40)[1]).toMatch(/^ +reward /);
  expect(chartLines(rewards(1), 40)).toEqual([]);
  expect(chartLines([], 40)).toEqual([]);
  expect(chartLines(rewards(1, 2), 1)).toEqual([]);
  // All alike: in the middle.
  expect(bars(chartLines(rewards(3, 3), 40))).toEqual(['  ', '  ', '  ', '██', '██', '██']);
});

test('a chart is taken away, line for line, before the next one is drawn, and once', () => {
  const calls: string[] = [];
  const terminal = {
    columns: 13,
    write: (text: string) =>
      calls.push(`write ${text.split('\n').length - 1} ${text.split('\n')[0]?.length}`),
    moveCursor: (dx: number, dy: number) => calls.push(`move ${dx} ${dy}`),
    cursorTo: (x: number) => calls.push(`to ${x}`),
    clearScreenDown: () => calls.push('clear'),
  } as unknown as NodeJS.WriteStream;
  const chart = liveChart(terminal);
  chart.draw(rewards(1));
  chart.clear();
  expect(calls).toEqual([]);
  const gone = ['move 0 -6', 'to 0', 'clear'];
  chart.draw(rewards(1, 2, 3, 4, 5, 6, 7, 8));
  // As wide as the terminal.
  expect(calls).toEqual(['write 6 13']);
  chart.draw(rewards(1, 2));
  expect(calls.slice(1)).toEqual([...gone, 'write 6 12']);
  chart.clear();
  chart.clear();
  expect(calls.slice(5)).toEqual(gone);
});
