// What every benchmark prints: a table for people, then one line of JSON for tools. A figure that misses its
// goal is printed as missed.

import { join } from 'node:path';
import { packageRoot } from '#searchloop/config/index.js';

/** Where a benchmark keeps what it made, unless told otherwise. */
export const resultsFolder = (bench: string): string => join(packageRoot, 'bench', 'results', bench);

/** A line for whoever waits. */
export const note = (line: string): void => void process.stderr.write(`${line}\n`);

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Null: measured for information. */
  readonly goal: { readonly least?: number; readonly most?: number } | null;
}

export function isMet(figure: Figure): boolean | null {
  if (figure.goal === null) return null;
  const { least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY } = figure.goal;
  return figure.value >= least && figure.value <= most;
}

export function printReport(bench: string, figures: readonly Figure[], notes: readonly string[] = []): void {
  const rows = figures.map((figure) => [
    figure.name,
    format(figure.value),
    figure.unit,
    goalText(figure.goal),
    { true: 'met', false: 'MISSED', null: '' }[String(isMet(figure))] as string,
  ]);
  const table = [['figure', 'value', 'unit', 'goal', ''], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  for (const row of table) {
    const cells = row.map((cell, column) =>
      column === 1 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
    );
    process.stdout.write(`${cells.join('  ').trimEnd()}\n`);
  }
  for (const note of notes) process.stdout.write(`${note}\n`);
  process.stdout.write(
    `${JSON.stringify({ bench, figures: figures.map((figure) => ({ ...figure, met: isMet(figure) })) })}\n`,
  );
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Nearest-rank percentile, q in [0, 1]. */
export function percentile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))]!;
}

function format(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function goalText(goal: Figure['goal']): string {
  if (goal === null) return '';
  return [
    goal.least === undefined ? '' : `>= ${goal.least}`,
    goal.most === undefined ? '' : `<= ${goal.most}`,
  ]
    .filter(Boolean)
    .join(' and ');
}
