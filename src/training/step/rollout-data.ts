// What is fixed of the rollouts of a step before the first update: log-probabilities under the policies that count.

import { IntegrityError } from '../../errors.js';
import type { RolloutData } from '../algorithms/index.js';
import type { StepWork } from '../trainer/messages.js';
import type { TrainedPart } from '../trainer/trainable.js';
import { atTargets, type StepControl, scoreSequences, type TokenRows } from './accumulate.js';
import { type RolloutFacts, sampledTokens, type TrainingSequence } from './sequences.js';
import { withValuesOf } from './values.js';

export interface Rollout extends TrainingSequence {
  readonly rollout: RolloutFacts;
}

/**
 * Rollouts have a reward, demonstrations were given.
 * @throws {IntegrityError} one was given, and nothing says what it weighs
 */
export function partsOf({ sequences, demonstrationWeight }: StepWork): {
  readonly rollouts: readonly Rollout[];
  readonly demonstrations: readonly TrainingSequence[];
} {
  const isRollout = (sequence: TrainingSequence): sequence is Rollout => sequence.rollout !== null;
  const demonstrations = sequences.filter((sequence) => !isRollout(sequence));
  const [given] = demonstrations;
  if (given !== undefined && demonstrationWeight === 0)
    throw new IntegrityError(`sequence ${given.id} is no rollout: it has no reward`);
  return { rollouts: sequences.filter(isRollout), demonstrations };
}

/** Rows of per-token numbers, [T] each; null where they are not needed. */
type PerToken = readonly Float64Array[] | null;

/** What is known of a rollout without running a model. */
export function plainData({ lossMask, environmentMask, rollout }: Rollout): RolloutData {
  const { groupId, reward, baseline, engineLogprobs } = rollout;
  return {
    lossMask,
    environmentMask,
    groupId,
    reward,
    ...(baseline === undefined ? {} : { baseline }),
    ...(engineLogprobs === null ? {} : { logprobsEngine: engineLogprobs }),
  };
}

/** Whether advantages are made of log-probabilities or values, and not of rewards alone. */
export const advantagesNeedScores = ({ algorithm }: StepWork, critic: TrainedPart | null): boolean =>
  critic !== null || chargesKl(algorithm);

const chargesKl = ({ klPlace, klBeta }: StepWork['algorithm']): boolean =>
  klPlace === 'reward' && klBeta !== 0;

/**
 * What models say of rollouts before the first update, each in the order of `rollouts`.
 * @param policy  with the values that the step starts from
 * @param critic  likewise; null where the algorithm has none
 */
export async function scoredData(
  policy: TrainedPart,
  critic: TrainedPart | null,
  rollouts: readonly Rollout[],
  work: StepWork,
  control: StepControl,
): Promise<Pick<RolloutData, 'logprobsOld' | 'logprobsRef' | 'valuesOld'>[]> {
  const rows = rollouts.map(({ tokenIds }) => Array.from(tokenIds));
  const targets = rollouts.map(sampledTokens);
  const { reference } = work;
  const score = (part: TrainedPart, wanted: 'logprobs' | 'values') =>
    scoreAll(part, wanted, rows, targets, control);
  const old = await oldLogprobs(policy, rollouts, rows, targets, work, control);
  const ref =
    reference === null ? null : await withValuesOf(policy, reference, () => score(policy, 'logprobs'));
  const values = critic === null ? null : await score(critic, 'values');
  return rollouts.map((_, i) => ({
    ...(old === null ? {} : { logprobsOld: old[i] as Float64Array }),
    ...(ref === null ? {} : { logprobsRef: ref[i] as Float64Array }),
    ...(values === null ? {} : { valuesOld: values[i] as Float64Array }),
  }));
}

async function scoreAll(
  { model }: TrainedPart,
  wanted: 'logprobs' | 'values',
  rows: TokenRows,
  targets: readonly (readonly number[])[],
  control: StepControl,
): Promise<Float64Array[]> {
  const scores = await scoreSequences(model, rows, targets, control);
  return rows.map((row, i) =>
    atTargets(row.length, targets[i] as readonly number[], scores[i]?.[wanted] as Float32Array),
  );
}

/**
 * logPold: of each rollout under the version that sampled it. Not needed where one update is made on rollouts of
 * the present policy: the log-probabilities of the forward run are the same.
 */
async function oldLogprobs(
  policy: TrainedPart,
  rollouts: readonly Rollout[],
  rows: TokenRows,
  targets: readonly (readonly number[])[],
  work: StepWork,
  control: StepControl,
): Promise<PerToken> {
  const { algorithm, version } = work;
  const versions = [...new Set(rollouts.map(({ rollout }) => rollout.version))];
  const onePass = work.batchEpochs === 1 && rollouts.length <= work.miniBatchSequences;
  if (onePass && !chargesKl(algorithm) && versions.every((name) => name === version)) return null;
  const found = rows.map((row) => new Float64Array(row.length));
  for (const name of versions) {
    const members = rollouts.flatMap(({ rollout }, i) => (rollout.version === name ? [i] : []));
    const pick = <Item>(items: readonly Item[]): Item[] => members.map((i) => items[i] as Item);
    const score = () => scoreAll(policy, 'logprobs', pick(rows), pick(targets), control);
    const scored = name === version ? await score() : await withValuesOf(policy, folderOf(name, work), score);
    for (const [at, i] of members.entries()) found[i] = scored[at] as Float64Array<ArrayBuffer>;
  }
  return found;
}

function folderOf(version: string, { versions }: StepWork): string {
  const folder = versions[version];
  if (folder === undefined)
    throw new IntegrityError(`rollouts of version ${version.slice(0, 12)}, but its folder is not known`);
  return folder;
}
