// How a training run shows itself: one line a step.

import type { StepReport } from '../training/index.js';
import type { Output } from './output.js';

export interface TrainView {
  onStep(report: StepReport, steps: number): void;
}

/** Figures in the order in which they are shown, with their short names. */
const SHOWN: readonly (readonly [figure: string, label: string])[] = [
  ['reward', 'reward'],
  ['loss', 'loss'],
  ['kl', 'kl'],
  ['entropy', 'entropy'],
  ['gradientNorm', 'gradient'],
  ['learningRate', 'rate'],
];

export function stepLines(output: Output): TrainView {
  let seconds = 0;
  let seen = 0;
  return {
    onStep(report, steps) {
      seconds += report.seconds;
      seen++;
      const left = (seconds / seen) * (steps - report.step);
      const figures = SHOWN.flatMap(([figure, label]) => {
        const value = report.metrics[figure];
        return value === undefined ? [] : [`${label} ${shortNumber(value)}`];
      });
      const speed = `${Math.round(report.tokens / report.seconds)} tok/s`;
      output.note([`step ${report.step}/${steps}`, ...figures, speed, `${duration(left)} left`].join('  '));
    },
  };
}

function shortNumber(value: number): string {
  const size = Math.abs(value);
  return value !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(1) : value.toPrecision(4);
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
