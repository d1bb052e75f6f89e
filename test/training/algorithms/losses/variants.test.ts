// Every variant of the policy loss against stored values.

import type { Aggregation } from '../../../../src/training/algorithms/aggregation.js';
import type { AlgorithmSettings } from '../../../../src/training/algorithms/index.js';
import { importanceWeights } from '../../../../src/training/algorithms/losses/importance-weights.js';
import { bare, difference, evaluateWhole, type Matrix, readLosses } from '../support.js';

interface VariantCase {
  readonly variant: string;
  readonly mask: Matrix;
  readonly logp: Matrix;
  readonly logpOld: Matrix;
  readonly logpRef: Matrix;
  readonly logpEngine?: Matrix;
  readonly advantages: Matrix;
  readonly aggregation?: Aggregation | 'sequence';
  readonly norm?: number;
  readonly beta?: number;
  readonly epsLow?: number;
  readonly epsHigh?: number;
  readonly epsMax?: number;
  readonly share?: number;
  readonly coefficient?: number;
  readonly lowerBound?: number;
  readonly upperBound?: number;
  readonly cap?: number;
  readonly weights?: Matrix;
  readonly keptSequences?: readonly number[];
  readonly ours: { readonly loss: number; readonly gradLogp: Matrix };
}

const ALGORITHM: Readonly<Record<string, string>> = {
  'grpo-token-mean': 'grpo',
  'truncated-importance-weights': 'grpo',
  'gspo-0.2': 'gspo',
  'gspo-0.0003': 'gspo',
};

function settingsOf(c: VariantCase): AlgorithmSettings {
  const given: Record<string, unknown> = {
    aggregation: c.aggregation === 'sequence' ? undefined : c.aggregation,
    tokenSumNorm: c.norm,
    klBeta: c.beta,
    klPlace: c.beta === undefined ? undefined : 'loss',
    clipEpsilonLow: c.epsLow,
    clipEpsilonHigh: c.epsHigh,
    cispoMax: c.epsMax,
    importanceCap: c.cap,
    ...(c.variant === 'kl-cov' && { klCovShare: c.share, klCovCoefficient: c.coefficient }),
    ...(c.variant === 'clip-cov' && {
      clipCovShare: c.share,
      clipCovLow: c.lowerBound,
      clipCovHigh: c.upperBound,
    }),
  };
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return bare(ALGORITHM[c.variant] ?? c.variant, set as Partial<AlgorithmSettings>);
}

const cases = readLosses<VariantCase>('variants').filter((c) => c.variant !== 'llds-penalty');

test.each(cases)('$variant', (c) => {
  const { evaluation, gradient } = evaluateWhole(c, settingsOf(c), () => 0.5);
  expect(Math.abs(evaluation.loss - c.ours.loss)).toBeLessThan(1e-6);
  expect(difference(gradient, c.ours.gradLogp)).toBeLessThan(1e-6);
});

test('truncated importance weights', () => {
  const c = cases.find(({ variant }) => variant === 'truncated-importance-weights') as VariantCase;
  const weights = c.mask.map((mask, i) => {
    const [old, engine] = [Float64Array.from(c.logpOld[i]!), Float64Array.from(c.logpEngine![i]!)];
    return importanceWeights(old, engine, c.cap!).map((w, t) => w * mask[t]!);
  });
  expect(difference(weights, c.weights!)).toBeLessThan(1e-6);
});

test('llds-penalty is what the add-on adds', () => {
  const c = readLosses<VariantCase>('variants').find(
    ({ variant }) => variant === 'llds-penalty',
  ) as VariantCase;
  expect(new Set(c.keptSequences)).toEqual(new Set([0, 1]));
  const without = evaluateWhole(c, bare('grpo'));
  const added = evaluateWhole(c, bare('grpo', { lldsWeight: 0.5 }));
  expect(added.evaluation.loss - without.evaluation.loss).toBeCloseTo(0.5 * c.ours.loss, 8);
  const gradient = added.gradient.map((row, s) => row.map((g, t) => (g - without.gradient[s]![t]!) / 0.5));
  expect(difference(gradient, c.ours.gradLogp)).toBeLessThan(1e-6);
});

test('every policy loss has a case', () => {
  const covered = new Set(cases.map((c) => settingsOf(c).policyLoss));
  expect(covered).toEqual(new Set(['clipped', 'reinforce', 'cispo', 'gspo', 'kl-cov', 'clip-cov']));
});
