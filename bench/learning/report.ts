// Table, curves and docs/learning.md of the runs that are there.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '#searchloop/config/index.js';
import { type PlottedRun, plotRuns } from '#searchloop/training/index.js';
import { writeFileAtomic } from '#searchloop/util/atomic-file.js';
import type { CurvePoint } from '../tiny-world/run.js';
import type { RunResult } from './results.js';
import { LEARNERS, VARIANTS } from './variants.js';

const CURVES = ['exactMatch', 'twoHop', 'twoHopSearches'];
const REWARD_SMOOTHING = 5;
const CAPTIONS = {
  'algorithms.svg': 'Held-out exact match, and searches for questions of two steps: algorithms and the mask',
  'ablations.svg': 'The same: passages a search, and rollouts a question',
  'training.svg': `Figures of training, mean of ${REWARD_SMOOTHING} steps`,
};

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);

/** Mean exact match over the curve's points after the start: how well, and how soon. */
export const curveMean = ({ curve }: RunResult): number =>
  mean(curve.filter(({ step }) => step > 0).map(({ exactMatch }) => exactMatch));

export const startOf = ({ curve }: RunResult): number => curve[0]?.exactMatch ?? Number.NaN;

/** A line a variant: means over seeds, each seed's end in brackets. */
export function markdownTable(results: readonly RunResult[]): string {
  const rows = VARIANTS.flatMap(({ name, about }) => {
    const runs = runsOf(results, name);
    if (runs.length === 0) return [];
    const figure = (value: (run: RunResult) => number): string => mean(runs.map(value)).toFixed(3);
    const each = runs.map(({ final }) => final.exactMatch.toFixed(3)).join(', ');
    return [
      [
        about,
        figure(startOf),
        `${figure(({ final }) => final.exactMatch)} (${each})`,
        figure(curveMean),
        figure(({ final }) => final.oneHop),
        figure(({ final }) => final.twoHop),
        mean(runs.map(({ final }) => final.twoHopSearches)).toFixed(2),
        figure(({ emptyIndex }) => emptyIndex.exactMatch),
        mean(runs.map(({ minutes }) => minutes)).toFixed(1),
      ],
    ];
  });
  const head = [
    'run',
    'EM at the start',
    'EM at the end (each seed)',
    'mean over the curve',
    'one step',
    'two steps',
    'searches, two steps',
    'EM, empty index',
    'minutes',
  ];
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function runsOf(results: readonly RunResult[], variant: string): RunResult[] {
  return results.filter((result) => result.variant === variant).sort((a, b) => a.seed - b.seed);
}

/** Mean curve of a variant over its seeds. */
function meanCurve(results: readonly RunResult[], variant: string): PlottedRun {
  const curves = runsOf(results, variant).map(({ curve }) => curve);
  const steps = curves[0]?.map(({ step }) => step) ?? [];
  const at = (curve: readonly CurvePoint[], step: number) => curve.find((point) => point.step === step);
  const rows = steps
    .filter((step) => curves.every((curve) => at(curve, step) !== undefined))
    .map((step) => ({
      step,
      ...Object.fromEntries(
        CURVES.map((figure) => [
          figure,
          mean(curves.map((curve) => at(curve, step)?.[figure as keyof CurvePoint] ?? 0)),
        ]),
      ),
    }));
  return { name: VARIANTS.find(({ name }) => name === variant)?.about ?? variant, rows };
}

/** Writes the pictures, and puts table and pictures into docs/learning.md, between its marks. */
export async function writeReport(results: readonly RunResult[]): Promise<void> {
  const present = VARIANTS.map(({ name }) => name).filter((name) => runsOf(results, name).length > 0);
  const learners = present.filter((name) => (LEARNERS as readonly string[]).includes(name));
  const curves = (names: readonly string[]) => names.map((name) => meanCurve(results, name));
  const docs = join(packageRoot, 'docs');
  const rewards = learners.flatMap((name) =>
    runsOf(results, name).map(({ seed, rows }) => ({ name: `${name}, seed ${seed}`, rows })),
  );
  const pictures: Readonly<Record<keyof typeof CAPTIONS, string>> = {
    'algorithms.svg': plotRuns(curves([...learners, 'grpo-unmasked']), CURVES),
    'ablations.svg': plotRuns(
      curves(present.filter((name) => name.startsWith('grpo') || name === 'reinforce')),
      CURVES,
    ),
    'training.svg': plotRuns(
      rewards,
      ['reward', 'searches', 'sampledTokens', 'entropy', 'kl', 'clipFraction'],
      REWARD_SMOOTHING,
    ),
  };
  for (const [name, picture] of Object.entries(pictures))
    await writeFileAtomic(join(docs, 'learning', name), picture);
  const shown = Object.entries(CAPTIONS).map(([name, caption]) => `![${caption}](learning/${name})`);
  await putIntoDocs(join(docs, 'learning.md'), [markdownTable(results), ...shown].join('\n\n'));
}

const BEGIN = '<!-- table: written by `npm run bench -- learning` -->';
const END = '<!-- end of table -->';

async function putIntoDocs(path: string, written: string): Promise<void> {
  const text = await readFile(path, 'utf8');
  const [before, rest] = text.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined)
    throw new Error(`${path}: expected the lines "${BEGIN}" and "${END}"`);
  await writeFileAtomic(path, `${before}${BEGIN}\n\n${written}\n\n${END}${after}`);
}
