// Rollouts and demonstrations in one update: the loss is that of the rollouts plus a weighted cross-entropy on the
// demonstrations. One gradient, so that one rate and one clip hold for both.

import { InvalidInputError } from '../../errors.js';
import { addMetrics, NO_METRICS } from './metrics.js';
import type { CurrentScores, Evaluation, MetricSums, Objective } from './objective.js';

type ScoreName = keyof CurrentScores;
const SCORES = ['logprobs', 'entropies', 'values'] as const satisfies readonly ScoreName[];

/** Indices into the micro-batch's targets of the sequences of one of the two. */
interface Share {
  readonly members: readonly number[];
  readonly slots: readonly number[];
}

/**
 * The sequences of the one stand before those of the other: index `rollouts.targets.length` is the first demonstration.
 * @param weight  of the loss of the demonstrations
 */
export function joinObjectives(rollouts: Objective, demonstrations: Objective, weight: number): Objective {
  const count = rollouts.targets.length;
  const targets = [...rollouts.targets, ...demonstrations.targets];

  const split = (sequences: readonly number[]): readonly [Share, Share] => {
    const shares = [
      { members: [] as number[], slots: [] as number[] },
      { members: [] as number[], slots: [] as number[] },
    ] as const;
    let offset = 0;
    for (const sequence of sequences) {
      const length = targets[sequence]?.length;
      if (length === undefined)
        throw new InvalidInputError(`expected a sequence below ${targets.length}, got ${sequence}`);
      const { members, slots } = shares[sequence < count ? 0 : 1];
      members.push(sequence < count ? sequence : sequence - count);
      for (let i = 0; i < length; i++) slots.push(offset + i);
      offset += length;
    }
    return shares;
  };

  return {
    kind: 'policy',
    targets,
    empty: rollouts.empty && demonstrations.empty,
    needsBatchLogprobs: rollouts.needsBatchLogprobs,
    prepare: (logprobs) => rollouts.prepare(logprobs.slice(0, count)),
    evaluate(sequences, scores) {
      const [first, second] = split(sequences);
      const parts = [
        { share: first, evaluation: evaluateShare(rollouts, first, scores), weight: 1 },
        { share: second, evaluation: shown(evaluateShare(demonstrations, second, scores), weight), weight },
      ];
      return {
        loss: parts.reduce((sum, { evaluation, weight: by }) => sum + by * (evaluation?.loss ?? 0), 0),
        gradients: {
          logprobs: joined('logprobs', scores, parts),
          entropies: joined('entropies', scores, parts),
          values: joined('values', scores, parts),
        },
        metrics: parts.map(({ evaluation }) => evaluation?.metrics ?? NO_METRICS).reduce(addMetrics),
      };
    },
  };
}

/** Null where the micro-batch holds none of its sequences. */
function evaluateShare(
  objective: Objective,
  { members, slots }: Share,
  scores: Partial<CurrentScores>,
): Evaluation | null {
  if (members.length === 0) return null;
  const own: Partial<Record<ScoreName, Float64Array>> = {};
  for (const name of SCORES) {
    const values = scores[name];
    if (values === undefined) continue;
    // A model without a head for it gives an empty list.
    const has = values.length === 0 ? [] : slots;
    own[name] = Float64Array.from(has, (slot) => values[slot] as number);
  }
  return objective.evaluate(members, own);
}

/** Figures of demonstrations have names of their own: all others are of rollouts. */
function shown(evaluation: Evaluation | null, weight: number): Evaluation | null {
  if (evaluation === null) return null;
  const { sums, counts } = evaluation.metrics;
  const metrics: MetricSums = {
    sums: {
      loss: weight * evaluation.loss,
      demonstrationLoss: evaluation.loss,
      demonstrationLogprob: sums.logprob ?? 0,
    },
    counts: { demonstrationLogprob: counts.logprob ?? 0 },
    maxima: {},
  };
  return { ...evaluation, metrics };
}

interface WeighedPart {
  readonly share: Share;
  readonly evaluation: Evaluation | null;
  readonly weight: number;
}

function joined(
  name: ScoreName,
  scores: Partial<CurrentScores>,
  parts: readonly WeighedPart[],
): Float64Array | null {
  const gradients = parts.map(({ evaluation }) => evaluation?.gradients[name] ?? null);
  if (gradients.every((list) => list === null)) return null;
  const all = new Float64Array(scores[name]?.length ?? 0);
  for (const [at, { share, weight }] of parts.entries())
    for (const [i, value] of (gradients[at] ?? []).entries()) all[share.slots[i] as number] = weight * value;
  return all;
}
