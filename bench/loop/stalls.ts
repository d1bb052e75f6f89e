// How long a stream stands still when a version goes live, in decode steps.
//
// A decode step is the mean pause between two tokens of the pulse's streams, away from swaps: where a step takes a millisecond,
// tokens reach their reader several at a time, and most pauses are none. The stall at a swap is the longest such pause that
// overlaps the time from the beginning of the swap (the version's files are checked and loaded aside) to its end (the alias
// has moved). A machine has pauses of its own: the same is measured for windows of the same lengths right before each swap,
// in which nothing changes.

import type { Swap } from './server.js';
import type { Gap } from './users.js';

export interface StallReport {
  /** Milliseconds. */
  readonly stepMs: number;
  /** Of each swap that streams ran through: its longest pause, in decode steps. */
  readonly atSwaps: readonly number[];
  /** The same of windows without a swap. */
  readonly elsewhere: readonly number[];
}

/** Between the window without a swap and the swap. */
const APART_MS = 200;

export function stallsOf(gaps: readonly Gap[], swaps: readonly Swap[]): StallReport {
  const overlaps = ({ from, to }: Gap, began: number, ended: number): boolean => from < ended && to > began;
  const calm = gaps.filter((gap) => !swaps.some(({ began, ended }) => overlaps(gap, began, ended)));
  const stepMs = calm.reduce((sum, { from, to }) => sum + to - from, 0) / calm.length;
  const longest = (began: number, ended: number): number[] => {
    const within = gaps.filter((gap) => overlaps(gap, began, ended));
    return within.length === 0 ? [] : [Math.max(...within.map(({ from, to }) => to - from)) / stepMs];
  };
  return {
    stepMs,
    atSwaps: swaps.flatMap(({ began, ended }) => longest(began, ended)),
    elsewhere: swaps.flatMap(({ began, ended }) => {
      const end = began - APART_MS;
      return longest(end - (ended - began), end);
    }),
  };
}
