// How a training run shows itself: one line a step; on a terminal a curve below that moves with it.

import { join } from 'node:path';
import type { RlEvents, RunFolder, TrainingOutcome } from '../loop/index.js';
import { type MetricsRow, readMetrics } from '../training/index.js';
import { counted } from './counted.js';
import { liveChart } from './live-chart.js';
import type { Output } from './output.js';

export type TrainView = Required<Pick<RlEvents, 'onStep' | 'onRollout' | 'onValidation'>> & {
  close(): Promise<void>;
};

/** Figures in the order in which they are shown, with their short names. */
const SHOWN: readonly (readonly [figure: string, label: string])[] = [
  ['reward', 'reward'],
  ['exactMatch', 'em'],
  ['searches', 'searches'],
  ['validShare', 'valid'],
  ['loss', 'loss'],
  ['kl', 'kl'],
  ['entropy', 'entropy'],
  ['gradientNorm', 'gradient'],
  ['learningRate', 'rate'],
];

/** Rollouts between two lines about them. */
const ROLLOUTS_A_LINE = 8;

export async function openTrainView(output: Output, run: RunFolder): Promise<TrainView> {
  const rows: MetricsRow[] = run.from === null ? [] : await readMetrics(run.metrics);
  const chart = process.stderr.isTTY && !output.json ? liveChart(process.stderr) : null;
  const note = (line: string): void => {
    chart?.clear();
    output.note(line);
    chart?.draw(rows);
  };
  let seconds = 0;
  let seen = 0;
  return {
    onRollout(done, total, step) {
      if (done % ROLLOUTS_A_LINE === 0 || done === total)
        note(`step ${step}: ${done} of ${counted(total, 'rollout')}`);
    },
    onStep(report, steps) {
      rows.push({ step: report.step, ...report.metrics });
      seconds += report.seconds + (report.metrics.rolloutSeconds ?? 0);
      seen++;
      const left = (seconds / seen) * (steps - report.step);
      const figures = SHOWN.flatMap(([figure, label]) => {
        const value = report.metrics[figure];
        return value === undefined ? [] : [`${label} ${shortNumber(value)}`];
      });
      const speed = `${Math.round(report.tokens / report.seconds)} tok/s`;
      note([`step ${report.step}/${steps}`, ...figures, speed, `${duration(left)} left`].join('  '));
    },
    onValidation(figures, step) {
      const shown = Object.entries(figures).map(([name, value]) => `${name} ${shortNumber(value)}`);
      note(`validation of step ${step}  ${shown.join('  ')}`);
    },
    async close() {
      chart?.clear();
    },
  };
}

export function outcomeText(outcome: TrainingOutcome, run: string): string {
  const { steps, step, version, folder, adapter } = outcome;
  return [
    `${counted(steps, 'step')}; version ${version.slice(0, 12)} of step ${step}`,
    adapter === null ? `weights  ${folder}` : `adapter  ${adapter}`,
    `figures  ${join(run, 'metrics.jsonl')}`,
  ].join('\n');
}

function shortNumber(value: number): string {
  const size = Math.abs(value);
  return value !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(1) : value.toPrecision(4);
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
