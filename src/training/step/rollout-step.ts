// One step of reinforcement learning: advantages over all rollouts, then updates over mini-batches.

import { derivedSeed } from '../../util/derived-seed.js';
import { mean } from '../../util/mean.js';
import { randomNumbers, shuffledOrder } from '../../util/random.js';
import {
  type AdvantageResult,
  addMetrics,
  computeAdvantages,
  createPolicyObjective,
  createValueObjective,
  type MetricSums,
  NO_METRICS,
  type Objective,
  type ObjectiveSequence,
  type RolloutData,
  stopsEarly,
  summariseMetrics,
} from '../algorithms/index.js';
import type { StepWork } from '../trainer/messages.js';
import { type StepControl, scoreSequences, type TokenRows } from './accumulate.js';
import { driftOf } from './drift.js';
import { type UpdateReport, updateModel } from './guarded-update.js';
import { advantagesNeedScores, asRollouts, plainData, type Rollout, scoredData } from './rollout-data.js';
import type { StepOutcome, StepPart, StepParts } from './step-parts.js';

/**
 * @returns figures of the step; `updates` is 0 where no rollout carried a signal, and then nothing has changed
 * @throws {IntegrityError} a sequence is no rollout, or the values of its version are not at hand
 */
export async function rolloutStep(
  parts: StepParts,
  work: StepWork,
  control: StepControl,
): Promise<StepOutcome> {
  const all = asRollouts(work.sequences);
  const rollouts = all.filter(({ rollout }) => rollout.staleness <= work.algorithm.maxStaleness);
  const counted = countTokens(control);
  const { data, made } = await advantagesOf(parts, rollouts, work, counted.control);
  const batch = new StepBatch(
    rollouts.map(({ tokenIds }) => Array.from(tokenIds)),
    data.map((item, i) => ({
      ...item,
      advantages: made.advantages[i] as Float64Array,
      ...(made.returns === null ? {} : { returns: made.returns[i] as Float64Array }),
    })),
    made.keep.flatMap((kept, i) => (kept ? [i] : [])),
  );
  const updates = await runUpdates(parts, batch, work, counted.control);
  const { reference } = work;
  // A policy that has collapsed gets nothing right, so that no group differs and no update measures how far it has gone.
  const drift =
    updates.count > 0 || reference === null
      ? {}
      : await driftOf(parts.policy, rollouts, reference, counted.control);
  return {
    metrics: {
      ...summariseMetrics(made.metrics),
      ...updates.figures,
      ...drift,
      ...rolloutFigures(rollouts),
      learningRate: work.policy.learningRate,
      ...(parts.critic === null ? {} : { valueLearningRate: work.value.learningRate }),
      klBeta: work.algorithm.klBeta,
      rollouts: rollouts.length,
      staleRollouts: all.length - rollouts.length,
      trainedRollouts: batch.kept.length,
      updates: updates.count,
    },
    tokens: counted.tokens(),
  };
}

/** Where rewards alone decide, rollouts without a signal are found first and no model reads them. */
async function advantagesOf(
  { policy, critic }: StepParts,
  rollouts: readonly Rollout[],
  work: StepWork,
  control: StepControl,
): Promise<{ readonly data: readonly RolloutData[]; readonly made: AdvantageResult }> {
  const data = rollouts.map(plainData);
  const early = advantagesNeedScores(work, critic) ? null : computeAdvantages(data, work.algorithm);
  const read = rollouts.flatMap((_, i) => (early === null || early.keep[i] ? [i] : []));
  const chosen = read.map((i) => rollouts[i] as Rollout);
  const scored = await scoredData(policy, critic, chosen, work, control);
  for (const [at, i] of read.entries()) data[i] = { ...(data[i] as RolloutData), ...scored[at] };
  return { data, made: early ?? computeAdvantages(data, work.algorithm) };
}

class StepBatch {
  constructor(
    private readonly rows: TokenRows,
    private readonly sequences: readonly ObjectiveSequence[],
    /** Sequences that carry a signal. */
    readonly kept: readonly number[],
  ) {}

  rowsOf(members: readonly number[]): TokenRows {
    return members.map((i) => this.rows[i] as readonly number[]);
  }

  sequencesOf(members: readonly number[]): ObjectiveSequence[] {
    return members.map((i) => this.sequences[i] as ObjectiveSequence);
  }

  /** Members of each update of one pass, in an order that the seed decides; as they came where one update takes all. */
  miniBatches(size: number, seed: number): number[][] {
    const { kept } = this;
    const order = kept.length <= size ? kept : shuffledOrder(kept.length, seed).map((i) => kept[i] as number);
    const batches: number[][] = [];
    for (let from = 0; from < order.length; from += size) batches.push(order.slice(from, from + size));
    return batches;
  }
}

async function runUpdates(
  { policy, critic }: StepParts,
  batch: StepBatch,
  work: StepWork,
  control: StepControl,
): Promise<{ readonly figures: Record<string, number>; readonly count: number }> {
  const random = randomNumbers(derivedSeed(work.seed, 'objective'));
  const policyReports: UpdateReport[] = [];
  const valueReports: UpdateReport[] = [];
  passes: for (let pass = 0; pass < work.batchEpochs; pass++)
    for (const members of batch.miniBatches(work.miniBatchSequences, derivedSeed(work.seed, 'pass', pass))) {
      const rows = batch.rowsOf(members);
      const sequences = batch.sequencesOf(members);
      const objective = createPolicyObjective(sequences, work.algorithm, random);
      if (objective.empty) continue;
      if (critic !== null) {
        const value = createValueObjective(sequences, work.algorithm);
        valueReports.push(await update(critic, rows, value, work.value, control));
      }
      const report = await update(policy, rows, objective, work.policy, control);
      policyReports.push(report);
      const approxKl = summariseMetrics(report.metrics).approxKl ?? 0;
      if (stopsEarly(approxKl, work.algorithm.targetKl)) break passes;
    }
  return {
    figures: {
      ...figuresOf(valueReports, 'valueGradientNorm'),
      ...figuresOf(policyReports, 'gradientNorm'),
    },
    count: policyReports.length,
  };
}

async function update(
  { model, optimizer }: StepPart,
  rows: TokenRows,
  objective: Objective,
  rule: StepWork['policy'],
  control: StepControl,
): Promise<UpdateReport> {
  if (objective.needsBatchLogprobs) {
    const scores = await scoreSequences(model, rows, objective.targets, control);
    objective.prepare(scores.map(({ logprobs }) => logprobs));
  }
  return updateModel(model, optimizer, rows, objective, rule, control);
}

/** Means over tokens are over those of all updates; parts of a whole-batch figure are averaged over the updates. */
function figuresOf(reports: readonly UpdateReport[], normName: string): Record<string, number> {
  if (reports.length === 0) return {};
  const merged = reports.reduce<MetricSums>((sums, { metrics }) => addMetrics(sums, metrics), NO_METRICS);
  const figures = summariseMetrics(merged);
  for (const name of Object.keys(merged.sums))
    if (merged.counts[name] === undefined) figures[name] = (merged.sums[name] as number) / reports.length;
  return { ...figures, [normName]: mean(reports.map(({ gradientNorm }) => gradientNorm)) };
}

function rolloutFigures(rollouts: readonly Rollout[]): Record<string, number> {
  const total = (count: (item: Rollout) => number): number =>
    rollouts.reduce((sum, item) => sum + count(item), 0);
  const valid = total(({ rollout }) => rollout.validActions);
  const actions = valid + total(({ rollout }) => rollout.invalidActions);
  return {
    ...(rollouts.length === 0
      ? {}
      : {
          searches: total(({ rollout }) => rollout.searches) / rollouts.length,
          sequenceTokens: total(({ tokenIds }) => tokenIds.length) / rollouts.length,
        }),
    ...(actions === 0 ? {} : { validShare: valid / actions }),
  };
}

function countTokens(control: StepControl): { readonly control: StepControl; tokens(): number } {
  let total = 0;
  return {
    tokens: () => total,
    control: {
      ...control,
      onTokens(tokens) {
        total += tokens;
        control.onTokens?.(tokens);
      },
    },
  };
}
