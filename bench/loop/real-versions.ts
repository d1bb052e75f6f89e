// Exact match of published versions on questions of the validation part, greedy, by the product's own command; each version is
// measured once, and a measurement that was stopped goes on.

import { join } from 'node:path';
import {
  type Interval,
  meanInterval,
  type PairedDifference,
  pairedDifference,
  type QuestionResult,
  readResults,
} from '#searchloop/evaluation/index.js';
import { command, type RealPlace } from './real-place.js';
import { keepVersions, keptFolder, receipts } from './versions.js';

export interface MeasuredVersion {
  readonly version: string;
  readonly steps: number;
  readonly exactMatch: Interval;
  readonly searches: number;
  readonly answered: number;
  /** Exact match less that of the version before, over the same questions; null of the start. */
  readonly gained: PairedDifference | null;
}

export interface Measured {
  readonly versions: readonly MeasuredVersion[];
  /** Last less first. */
  readonly whole: PairedDifference | null;
}

export async function measureVersions(
  place: RealPlace,
  questions: number,
  signal: AbortSignal,
): Promise<Measured> {
  await keepVersions(place);
  const found: { readonly version: string; readonly steps: number; readonly results: QuestionResult[] }[] =
    [];
  for (const [at, { version, steps }] of (await receipts(place)).entries()) {
    const output = join(place.folder, 'measured', `${at}-${version.slice(0, 12)}`);
    const adapter = at === 0 ? place.start : join(keptFolder(place), version);
    const where = ['--config', place.settingsFile, '--data', place.questionFile];
    const how = ['--split', 'validation', '--limit', String(questions), '--adapter', adapter];
    await command(['evaluate', ...where, ...how, '--output', output], signal);
    found.push({ version, steps, results: byId(await readResults(output)) });
  }
  const match = (results: readonly QuestionResult[]): number[] => results.map(({ em }) => em);
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  const gain = (later: readonly QuestionResult[], earlier: readonly QuestionResult[]) =>
    pairedDifference(match(later), match(earlier));
  const [first, last] = [found[0], found.at(-1)];
  return {
    versions: found.map(({ version, steps, results }, at) => {
      const before = found[at - 1];
      return {
        version,
        steps,
        exactMatch: meanInterval(match(results)),
        searches: mean(results.map(({ searches }) => searches)),
        answered: mean(results.map(({ stop }) => Number(stop === 'answer'))),
        gained: before === undefined ? null : gain(results, before.results),
      };
    }),
    whole: found.length < 2 ? null : gain(last!.results, first!.results),
  };
}

const byId = (results: readonly QuestionResult[]): QuestionResult[] =>
  [...results].sort((a, b) => (a.id < b.id ? -1 : 1));
