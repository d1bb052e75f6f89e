// What a loss is to the trainer: made once for an optimizer batch, evaluated micro-batch by micro-batch.
//
// Order of calls for one optimizer batch:
//   1. `computeAdvantages(rollouts, settings)` over all rollouts of the step; drop those it does not keep.
//   2. `createPolicyObjective(sequences, settings)` over the sequences of one optimizer batch (advantages filled in);
//      with a critic also `createValueObjective`. An `empty` objective has nothing to train: skip the step.
//   3. Where `needsBatchLogprobs`: score all sequences at their `targets` and call `prepare`.
//   4. For each micro-batch: forward at `targets`, `evaluate`, backward with `scoreGradients(evaluation)`.
//      Losses and metric sums add up to those of the whole batch, whatever the split.

import type { ScoreGradients } from '../training-model.js';

/**
 * What is fixed while a rollout is trained on. Per-token arrays have length T and entry t belongs to token t
 * (nats, natural logs). Entries where the mask is 0 are never read, so they may hold anything.
 */
export interface RolloutData {
  /** 1 exactly on tokens that the policy sampled and answers for; entry 0 is 0, since nothing predicts token 0. */
  readonly lossMask: ArrayLike<number>;
  /** 1 on retrieved tokens; read by `echo` only. */
  readonly environmentMask?: ArrayLike<number>;
  /** Rollouts of one question in one step share it. Never the question's text: two equal questions are two groups. */
  readonly groupId: string;
  /** Outcome of the rollout, without length penalty and KL. */
  readonly reward: number;
  /** Expected reward, taken off in a group of one; 0 when absent. See `RunningBaselines`. */
  readonly baseline?: number;
  /**
   * Of the policy that sampled, as the trainer computes it. Absent: the policy has not changed since (first
   * update on fresh rollouts), and the current log-probabilities stand in for it.
   */
  readonly logprobsOld?: ArrayLike<number>;
  /** Of the reference policy; needed for a KL term and the KL metric. */
  readonly logprobsRef?: ArrayLike<number>;
  /** As the engine reported them; absent: no importance weights. */
  readonly logprobsEngine?: ArrayLike<number>;
  /** V_t of the critic before this step's updates. */
  readonly valuesOld?: ArrayLike<number>;
}

/** A rollout with what `computeAdvantages` found for it. Supervised data needs neither. */
export interface ObjectiveSequence extends RolloutData {
  readonly advantages?: ArrayLike<number>;
  /** Targets of the critic. */
  readonly returns?: ArrayLike<number>;
}

/** What the model said at the targets, sequence after sequence (`Scores` of a TrainingModel fits). */
export interface CurrentScores {
  readonly logprobs: ArrayLike<number>;
  readonly entropies: ArrayLike<number>;
  readonly values: ArrayLike<number>;
}

/** Adds up over micro-batches by `addMetrics`; `summariseMetrics` makes the figures. */
export interface MetricSums {
  readonly sums: Readonly<Record<string, number>>;
  /** Denominator of each sum. */
  readonly counts: Readonly<Record<string, number>>;
  readonly maxima: Readonly<Record<string, number>>;
}

export interface Evaluation {
  /** This micro-batch's part of the loss of the whole batch. */
  readonly loss: number;
  /** d loss / d score, an entry for each target of the micro-batch; null where the loss does not read that score. */
  readonly gradients: {
    readonly logprobs: Float64Array | null;
    readonly entropies: Float64Array | null;
    readonly values: Float64Array | null;
  };
  readonly metrics: MetricSums;
}

export interface Objective {
  readonly kind: 'policy' | 'value';
  /** Token indices to score, for each sequence of the batch, ascending; a sequence without any need not run. */
  readonly targets: readonly (readonly number[])[];
  /** No token of the batch has a loss. */
  readonly empty: boolean;
  /** `prepare` must be called before `evaluate`. */
  readonly needsBatchLogprobs: boolean;
  /**
   * Chooses the tokens that a loss singles out over the whole batch (kl-cov, clip-cov).
   * @param logprobs  for each sequence of the batch, its current log-probabilities at `targets`
   */
  prepare(logprobs: readonly ArrayLike<number>[]): void;
  /**
   * @param sequences  indices into the batch, in the order in which the micro-batch holds them
   * @param scores     entries for the targets of exactly these sequences
   * @throws {InvalidInputError} lengths that do not fit; `prepare` was left out
   * @throws {NonFiniteError} a score or the loss is not finite; names sequence and token
   */
  evaluate(sequences: readonly number[], scores: Partial<CurrentScores>): Evaluation;
}

/** An evaluation's gradients as a TrainingModel takes them. */
export function scoreGradients(evaluation: Evaluation): ScoreGradients {
  const { logprobs, entropies, values } = evaluation.gradients;
  return {
    ...(logprobs !== null && { logprobs: Float32Array.from(logprobs) }),
    ...(entropies !== null && { entropies: Float32Array.from(entropies) }),
    ...(values !== null && { values: Float32Array.from(values) }),
  };
}
