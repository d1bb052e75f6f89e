// Sees a policy break before its reward falls: by what happens to its distribution, its habits and its updates.

import type { LoopConfig } from '../../config/index.js';

/** Figures of a step; a missing one is not judged. */
export interface HealthFigures {
  /** Nats, mean over sampled tokens. */
  readonly entropy?: number;
  /** Nats a token to the reference policy. */
  readonly kl?: number;
  readonly clipFraction?: number;
  /** Share of groups in which all are equally wrong: they teach nothing. Equally right ones are no sign of harm. */
  readonly zeroVarianceShare?: number;
  /** Share of 4-grams inside think blocks that stood there before. */
  readonly thinkRepetition?: number;
  /** Mean log-probability, nats a token, of right answers' sampled tokens. */
  readonly correctLogprob?: number;
  /** Sampled tokens of a rollout. */
  readonly responseTokens?: number;
}

export interface GuardSettings {
  /** Steps from which the normal is learned; none is judged by comparison before. */
  readonly warmSteps: number;
  /** Steps in a row that must be out of bounds, so that one odd batch stops nothing. */
  readonly patience: number;
  /** Entropy below this share of its normal. */
  readonly leastEntropyShare: number;
  readonly maxKl: number;
  readonly maxClipFraction: number;
  readonly maxZeroVarianceShare: number;
  /** And above the normal by so much: hard questions teach little from the start. */
  readonly maxZeroVarianceRise: number;
  /** Above the normal by so much. */
  readonly maxRepetitionRise: number;
  /** Below the normal by so many nats. */
  readonly maxLikelihoodFall: number;
  /** Length beyond this multiple of its normal, or below its inverse. */
  readonly maxLengthFactor: number;
}

/** A share of hopeless groups that is high from the start, as with hard questions, is no sign of harm. */
const ZERO_VARIANCE_RISE = 0.3;

export const guardSettings = (loop: LoopConfig): GuardSettings => ({
  warmSteps: loop.guardWarmSteps,
  patience: loop.guardPatience,
  leastEntropyShare: loop.guardMinEntropy,
  maxKl: loop.guardMaxKl,
  maxClipFraction: loop.guardMaxClip,
  maxZeroVarianceShare: loop.guardMaxWrong,
  maxZeroVarianceRise: ZERO_VARIANCE_RISE,
  maxRepetitionRise: loop.guardMaxRepetition,
  maxLikelihoodFall: loop.guardMaxForgetting,
  maxLengthFactor: loop.guardMaxLength,
});

/** Plain data, kept with the loop's state. */
export interface GuardState {
  readonly steps: number;
  /** Running means of steps that were in bounds. */
  readonly normal: Readonly<Partial<Record<keyof HealthFigures, number>>>;
  /** Steps in a row out of bounds, by figure. */
  readonly strikes: Readonly<Partial<Record<keyof HealthFigures, number>>>;
}

export interface GuardVerdict {
  readonly state: GuardState;
  /** Why the policy must not go on; empty: it may. */
  readonly alarms: readonly string[];
  /** Whether this step is one to come back to. */
  readonly stable: boolean;
}

/**
 * What the guard knows, where it still holds: under other prompts, limits, rewards or another index, other habits are normal.
 * @param of  names all that; '' is of a build that did not note it
 */
export const guardUnder = (
  { guard, guardOf }: { readonly guard: GuardState; readonly guardOf: string },
  of: string,
): { guard: GuardState; guardOf: string } => ({
  guard: guardOf === '' || guardOf === of ? guard : newGuardState(),
  guardOf: of,
});

export const newGuardState = (): GuardState => ({ steps: 0, normal: {}, strikes: {} });

const NEWEST_SHARE = 0.2;

interface Bound {
  readonly figure: keyof HealthFigures;
  /** What is wrong, or null. `normal` is undefined while it is being learned. */
  readonly fault: (value: number, normal: number | undefined, settings: GuardSettings) => string | null;
}

const BOUNDS: readonly Bound[] = [
  {
    figure: 'entropy',
    fault: (value, normal, { leastEntropyShare }) =>
      normal !== undefined && value < leastEntropyShare * normal
        ? `entropy ${n(value)} nats, below ${n(leastEntropyShare * normal)} (${leastEntropyShare} of its normal)`
        : null,
  },
  {
    figure: 'kl',
    fault: (value, _normal, { maxKl }) =>
      value > maxKl ? `KL to the reference ${n(value)} nats a token, above ${maxKl}` : null,
  },
  {
    figure: 'clipFraction',
    fault: (value, _normal, { maxClipFraction }) =>
      value > maxClipFraction ? `clip fraction ${n(value)}, above ${maxClipFraction}` : null,
  },
  {
    figure: 'zeroVarianceShare',
    fault: (value, normal, { maxZeroVarianceShare, maxZeroVarianceRise }) =>
      normal !== undefined && value > maxZeroVarianceShare && value > normal + maxZeroVarianceRise
        ? `share of groups that are equally wrong ${n(value)}, above ${maxZeroVarianceShare}; its normal is ${n(normal)}`
        : null,
  },
  {
    figure: 'thinkRepetition',
    fault: (value, normal, { maxRepetitionRise }) =>
      normal !== undefined && value > normal + maxRepetitionRise
        ? `repetition in think blocks ${n(value)}, above ${n(normal + maxRepetitionRise)}`
        : null,
  },
  {
    figure: 'correctLogprob',
    fault: (value, normal, { maxLikelihoodFall }) =>
      normal !== undefined && value < normal - maxLikelihoodFall
        ? `log-likelihood of right answers ${n(value)} nats a token, below ${n(normal - maxLikelihoodFall)}`
        : null,
  },
  {
    figure: 'responseTokens',
    fault: (value, normal, { maxLengthFactor }) =>
      normal !== undefined && (value > maxLengthFactor * normal || value * maxLengthFactor < normal)
        ? `response length ${n(value)} tokens, its normal is ${n(normal)}`
        : null,
  },
];

/** Judges a step and learns from it what is normal. */
export function guardStep(state: GuardState, figures: HealthFigures, settings: GuardSettings): GuardVerdict {
  const isWarm = state.steps >= settings.warmSteps;
  const normal = { ...state.normal };
  const strikes: Partial<Record<keyof HealthFigures, number>> = {};
  const alarms: string[] = [];
  for (const { figure, fault } of BOUNDS) {
    const value = figures[figure];
    if (value === undefined) continue;
    const wrong = Number.isFinite(value)
      ? fault(value, isWarm ? state.normal[figure] : undefined, settings)
      : `${figure} is not finite`;
    if (wrong === null) {
      const before = normal[figure];
      normal[figure] = before === undefined ? value : before + NEWEST_SHARE * (value - before);
      continue;
    }
    const count = (state.strikes[figure] ?? 0) + 1;
    strikes[figure] = count;
    if (count >= settings.patience || !Number.isFinite(value))
      alarms.push(`${wrong}, ${count} ${count === 1 ? 'step' : 'steps in a row'}`);
  }
  return {
    state: { steps: state.steps + 1, normal, strikes },
    alarms,
    stable: Object.keys(strikes).length === 0,
  };
}

const n = (value: number): string => String(Number(value.toPrecision(3)));
