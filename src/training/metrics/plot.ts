// Curves of runs as an SVG picture: a panel a figure, a line a run.

import { mean } from '../../util/mean.js';
import type { MetricsRow } from './metrics-file.js';

export interface PlottedRun {
  readonly name: string;
  readonly rows: readonly MetricsRow[];
}

const PANEL = { width: 340, height: 200, left: 52, right: 12, top: 28, bottom: 26 } as const;
const COLUMNS = 3;
const LEGEND_LINE = 18;
/** Okabe and Ito's palette: told apart by colour-blind readers too. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000'] as const;

/** Figures of a run that are plotted where nobody names others, in this order. */
export const PLOTTED_FIGURES: readonly string[] = [
  'reward',
  'exactMatch',
  'searches',
  'sampledTokens',
  'validShare',
  'loss',
  'kl',
  'entropy',
  'clipFraction',
  'approxKl',
  'gradientNorm',
  'zeroVarianceShare',
];

/**
 * @param figures  names; those without a number in any run are left out
 * @param smooth   steps that each point is the mean of, itself the last
 */
export function plotRuns(
  runs: readonly PlottedRun[],
  figures: readonly string[] = PLOTTED_FIGURES,
  smooth = 1,
): string {
  const known = new Set(knownFigures(runs));
  const shown = figures.filter((figure) => known.has(figure));
  const legend = LEGEND_LINE * runs.length + 10;
  const columns = Math.max(1, Math.min(COLUMNS, shown.length));
  const width = columns * PANEL.width;
  const height = legend + Math.ceil(shown.length / columns) * PANEL.height;
  const panels = shown.map((figure, i) => {
    const [x, y] = [(i % columns) * PANEL.width, legend + Math.floor(i / columns) * PANEL.height];
    return `<g transform="translate(${x},${y})">${panel(runs, figure, smooth)}</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    `<title>${escaped(`${shown.join(', ')}: ${runs.map(({ name }) => name).join(', ')}`)}</title>`,
    `<rect width="${width}" height="${height}" fill="white"/>`,
    ...runs.map(({ name }, i) => legendLine(name, i)),
    ...panels,
    '</svg>\n',
  ].join('\n');
}

/** Figures that have a number somewhere, by name. */
export function knownFigures(runs: readonly PlottedRun[]): string[] {
  const names = new Set<string>();
  for (const row of runs.flatMap(({ rows }) => rows))
    for (const [name, value] of Object.entries(row))
      if (name !== 'step' && Number.isFinite(value)) names.add(name);
  return [...names].sort();
}

const colourOf = (run: number): string => COLOURS[run % COLOURS.length] as string;

function legendLine(name: string, run: number): string {
  const y = LEGEND_LINE * run + 14;
  return `<line x1="12" y1="${y - 4}" x2="36" y2="${y - 4}" stroke="${colourOf(run)}" stroke-width="2"/><text x="42" y="${y}">${escaped(name)}</text>`;
}

interface Point {
  readonly step: number;
  readonly value: number;
}

function panel(runs: readonly PlottedRun[], figure: string, smooth: number): string {
  const lines = runs.map(({ rows }) => smoothed(pointsOf(rows, figure), smooth));
  const all = lines.flat();
  const [firstStep, lastStep] = extent(all.map(({ step }) => step));
  const [low, high] = extent(all.map(({ value }) => value));
  const { width, height, left, right, top, bottom } = PANEL;
  const x = (step: number): number =>
    left + ((step - firstStep) / (lastStep - firstStep)) * (width - left - right);
  const y = (value: number): number =>
    height - bottom - ((value - low) / (high - low)) * (height - top - bottom);
  const paths = lines.map((points, run) => {
    const places = points.map(({ step, value }) => [x(step).toFixed(1), y(value).toFixed(1)] as const);
    const [first] = places;
    if (first === undefined) return '';
    // A line of one point is not seen.
    return places.length === 1
      ? `<circle fill="${colourOf(run)}" r="2.5" cx="${first[0]}" cy="${first[1]}"/>`
      : `<polyline fill="none" stroke="${colourOf(run)}" stroke-width="1.5" points="${places.join(' ')}"/>`;
  });
  const axis = `M${left} ${top}V${height - bottom}H${width - right}`;
  return [
    `<text x="${left}" y="${top - 10}" font-weight="bold">${escaped(figure)}</text>`,
    `<path d="${axis}" fill="none" stroke="#888"/>`,
    ...[low, high].map(
      (value) => `<text x="${left - 4}" y="${y(value) + 4}" text-anchor="end">${short(value)}</text>`,
    ),
    ...[firstStep, lastStep].map(
      (step) => `<text x="${x(step)}" y="${height - bottom + 14}" text-anchor="middle">${step}</text>`,
    ),
    ...paths,
  ].join('');
}

function pointsOf(rows: readonly MetricsRow[], figure: string): Point[] {
  return rows.flatMap(({ step, [figure]: value }) =>
    Number.isFinite(value) ? [{ step, value: value as number }] : [],
  );
}

function smoothed(points: readonly Point[], window: number): Point[] {
  return points.map(({ step }, i) => {
    const part = points.slice(Math.max(0, i - window + 1), i + 1);
    return { step, value: mean(part.map(({ value }) => value)) };
  });
}

/** Least and greatest; opened where they are one. */
function extent(values: readonly number[]): readonly [number, number] {
  const low = values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
  const high = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  return high > low ? [low, high] : [low - 0.5, low + 0.5];
}

const short = (value: number): string => String(Number(value.toPrecision(3)));

const escaped = (text: string): string => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
