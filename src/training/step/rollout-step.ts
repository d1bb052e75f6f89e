// One step of reinforcement learning: advantages over all rollouts, then updates over mini-batches; where the step has
// demonstrations, each update takes a part of them too.

import { derivedSeed } from '../../util/derived-seed.js';
import { mean } from '../../util/mean.js';
import { randomNumbers, shuffledOrder } from '../../util/random.js';
import {
  type AdvantageResult,
  addMetrics,
  algorithmSettings,
  computeAdvantages,
  createPolicyObjective,
  createValueObjective,
  joinObjectives,
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
import { advantagesNeedScores, partsOf, plainData, type Rollout, scoredData } from './rollout-data.js';
import { sampledTokens, supervisedSequence, type TrainingSequence } from './sequences.js';
import type { StepOutcome, StepPart, StepParts } from './step-parts.js';

/**
 * @returns figures of the step; `updates` is 0 where no rollout carried a signal and nothing was shown, and then nothing has changed
 * @throws {IntegrityError} the values of the version of a rollout are not at hand; a given trajectory without a weight
 */
export async function rolloutStep(
  parts: StepParts,
  work: StepWork,
  control: StepControl,
): Promise<StepOutcome> {
  const { rollouts: all, demonstrations } = partsOf(work);
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
  const { reference } = work;
  const isSilent = !batch.kept.some((i) => sampledTokens(rollouts[i] as Rollout).length > 0);
  // A policy that has collapsed gets nothing right, so that no group differs and no update measures how far it has gone.
  const drift =
    isSilent && reference !== null ? await driftOf(parts.policy, rollouts, reference, counted.control) : {};
  const updates = await runUpdates(parts, { batch, demonstrations }, work, counted.control);
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
      ...(demonstrations.length === 0 ? {} : { demonstrations: demonstrations.length }),
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

/** What the updates of a step take. */
interface Material {
  readonly batch: StepBatch;
  readonly demonstrations: readonly TrainingSequence[];
}

async function runUpdates(
  { policy, critic }: StepParts,
  { batch, demonstrations }: Material,
  work: StepWork,
  control: StepControl,
): Promise<{ readonly figures: Record<string, number>; readonly count: number }> {
  const random = randomNumbers(derivedSeed(work.seed, 'objective'));
  const policyReports: UpdateReport[] = [];
  const valueReports: UpdateReport[] = [];
  passes: for (let pass = 0; pass < work.batchEpochs; pass++) {
    const batches = batch.miniBatches(work.miniBatchSequences, derivedSeed(work.seed, 'pass', pass));
    // Without a signal from rollouts there is one update, of what is shown alone.
    if (batches.length === 0) batches.push([]);
    for (const [at, members] of batches.entries()) {
      const rows = batch.rowsOf(members);
      const sequences = batch.sequencesOf(members);
      const ofRollouts = createPolicyObjective(sequences, work.algorithm, random);
      const shown = partAt(demonstrations, at, batches.length);
      const objective =
        shown.length === 0
          ? ofRollouts
          : joinObjectives(ofRollouts, crossEntropy(shown, work), work.demonstrationWeight);
      if (objective.empty) continue;
      if (critic !== null && !ofRollouts.empty) {
        const value = createValueObjective(sequences, work.algorithm);
        valueReports.push(await update(critic, rows, value, work.value, control));
      }
      const all = [...rows, ...shown.map(({ tokenIds }) => Array.from(tokenIds))];
      const report = await update(policy, all, objective, work.policy, control);
      policyReports.push(report);
      const approxKl = summariseMetrics(report.metrics).approxKl ?? 0;
      if (stopsEarly(approxKl, work.algorithm.targetKl)) break passes;
    }
  }
  return {
    figures: {
      ...figuresOf(valueReports, 'valueGradientNorm'),
      ...figuresOf(policyReports, 'gradientNorm'),
    },
    count: policyReports.length,
  };
}

/** The part of the items that belongs to one of several updates: as equal as they can be. */
function partAt<Item>(items: readonly Item[], at: number, parts: number): readonly Item[] {
  const border = (index: number): number => Math.floor((index * items.length) / parts);
  return items.slice(border(at), border(at + 1));
}

/** As supervised training has it. */
const crossEntropy = (shown: readonly TrainingSequence[], { algorithm }: StepWork): Objective =>
  createPolicyObjective(
    shown.map(supervisedSequence),
    algorithmSettings('sft', { focalGamma: algorithm.focalGamma }),
  );

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
