// The policy's objective: the token loss named in the settings plus KL, entropy, llds and echo, over one optimizer batch.
//
// Search-R1 eq. 1 to 3 are the terms `clipped` and `k3`; all others are off unless the settings ask for them. Denominators
// are fixed here, from the whole batch, before the first micro-batch is seen.

import { InvalidInputError, NonFiniteError } from '../../errors.js';
import { sum } from '../../util/mean.js';
import { tokenWeights } from './aggregation.js';
import { layoutOf, offsetsOf, type SequenceLayout, scoresAt } from './batch-layout.js';
import { chooseClipCov } from './losses/clip-cov.js';
import { tokenCovariances } from './losses/covariance.js';
import { echoLoss } from './losses/echo.js';
import { entropyLoss } from './losses/entropy-bonus.js';
import { importanceWeights, sequenceImportanceWeights } from './losses/importance-weights.js';
import { klEstimate, klGradient } from './losses/kl.js';
import { chooseKlCov } from './losses/kl-cov.js';
import { addLlds } from './losses/llds.js';
import { POLICY_LOSSES } from './losses/policy-losses.js';
import type { TokenLossInput } from './losses/token-loss.js';
import { pick } from './masked.js';
import { MetricBuilder } from './metrics.js';
import type { CurrentScores, Evaluation, Objective, ObjectiveSequence } from './objective.js';
import { observeRatios, observeReference, observeWeights } from './policy-metrics.js';
import type { AlgorithmSettings } from './settings.js';

/** What is fixed of a sequence, compacted to its sampled tokens. */
interface FixedTokens {
  readonly advantages: Float64Array;
  readonly logprobsOld: Float64Array | null;
  readonly logprobsRef: Float64Array | null;
  readonly logprobsEngine: Float64Array | null;
}

/** A sequence under evaluation; gradients [n] are those of its sampled tokens. */
interface SequencePart {
  readonly fixed: FixedTokens;
  readonly input: TokenLossInput;
  readonly gradients: Float64Array;
  readonly policyWeight: number;
  readonly termWeight: number;
}

/**
 * @param sequences  with `advantages`, unless the loss is the negative log-likelihood; with `logprobsRef` where KL
 *                   stands in the loss; with `environmentMask` for echo
 * @param random     uniform in [0, 1), from the trainer's stored generator; clip-cov draws its tokens with it
 * @throws {InvalidInputError} something needed is missing, has another length than the mask, or is not finite under it
 */
export function createPolicyObjective(
  sequences: readonly ObjectiveSequence[],
  settings: AlgorithmSettings,
  random?: () => number,
): Objective {
  return new PolicyObjective(sequences, settings, random);
}

class PolicyObjective implements Objective {
  readonly kind = 'policy';
  readonly targets: readonly (readonly number[])[];
  readonly empty: boolean;
  readonly needsBatchLogprobs: boolean;

  readonly #settings: AlgorithmSettings;
  readonly #random: (() => number) | undefined;
  readonly #layouts: readonly SequenceLayout[];
  readonly #fixed: readonly FixedTokens[];
  /** Weight of a token of each sequence in the policy loss, and in the KL and entropy terms. */
  readonly #policyWeights: Float64Array;
  readonly #termWeights: Float64Array;
  readonly #lldsWeight: number;
  readonly #echoWeight: number;
  #chosen: readonly Uint8Array[] | null = null;

  constructor(
    sequences: readonly ObjectiveSequence[],
    settings: AlgorithmSettings,
    random: (() => number) | undefined,
  ) {
    const { policyLoss, aggregation, tokenSumNorm } = settings;
    this.#settings = settings;
    this.#random = random;
    this.#layouts = sequences.map((sequence) => layoutOf(sequence, settings.echoWeight !== 0));
    this.#fixed = sequences.map((sequence, s) => fixedTokens(sequence, this.#layouts[s]!, settings));
    const counts = this.#layouts.map((layout) => layout.sampled.length);
    const environmentTokens = sum(this.#layouts.map((layout) => layout.environment.length));
    this.#termWeights = tokenWeights(counts, aggregation, tokenSumNorm);
    this.#policyWeights =
      policyLoss === 'gspo' ? tokenWeights(counts, 'seq-mean-token-mean', tokenSumNorm) : this.#termWeights;
    this.#lldsWeight = settings.lldsWeight === 0 ? 0 : settings.lldsWeight / Math.max(sum(counts), 1);
    this.#echoWeight = environmentTokens === 0 ? 0 : settings.echoWeight / environmentTokens;
    this.targets = this.#layouts.map((layout) => layout.targets);
    this.empty = this.targets.every((targets) => targets.length === 0);
    this.needsBatchLogprobs = (policyLoss === 'kl-cov' || policyLoss === 'clip-cov') && sum(counts) > 0;
    if (policyLoss === 'clip-cov' && random === undefined) {
      throw new InvalidInputError('clip-cov draws tokens and needs a random generator, got none', 'random');
    }
  }

  prepare(logprobs: readonly ArrayLike<number>[]): void {
    if (!this.needsBatchLogprobs) return;
    if (logprobs.length !== this.#layouts.length) {
      const message = `expected log-probabilities of ${this.#layouts.length} sequences, got ${logprobs.length}`;
      throw new InvalidInputError(message, 'logprobs');
    }
    const inputs = logprobs.map((values, s) => {
      offsetsOf(this.#layouts, [s], values, 'logprobs');
      return this.#input(s, this.#sampledScores(values, 0, s, 'log-probability'));
    });
    const covariances = tokenCovariances(
      inputs.map((input) => input.advantages),
      inputs.map((input) => input.logprobs),
    );
    this.#chosen =
      this.#settings.policyLoss === 'kl-cov'
        ? chooseKlCov(covariances, this.#settings.klCovShare)
        : chooseClipCov(inputs, covariances, this.#settings, this.#random as () => number);
  }

  evaluate(part: readonly number[], scores: Partial<CurrentScores>): Evaluation {
    if (this.needsBatchLogprobs && this.#chosen === null) {
      throw new InvalidInputError(`${this.#settings.policyLoss}: prepare must be called before evaluate`);
    }
    const current = scores.logprobs;
    if (current === undefined)
      throw new InvalidInputError('the policy loss needs logprobs, got none', 'logprobs');
    const offsets = offsetsOf(this.#layouts, part, current, 'logprobs');
    const metrics = new MetricBuilder();
    const gradients = new Float64Array(current.length);
    let loss = 0;
    part.forEach((s, p) => {
      const offset = offsets[p]!;
      const { sampledSlots } = this.#layouts[s]!;
      const input = this.#input(s, this.#sampledScores(current, offset, s, 'log-probability'));
      const sequence: SequencePart = {
        fixed: this.#fixed[s]!,
        input,
        gradients: new Float64Array(sampledSlots.length),
        policyWeight: this.#policyWeights[s]!,
        termWeight: this.#termWeights[s]!,
      };
      loss +=
        this.#policyTerm(sequence, metrics) +
        this.#klTerm(sequence, metrics) +
        this.#lldsTerm(sequence, metrics);
      sampledSlots.forEach((slot, i) => {
        gradients[offset + slot] = sequence.gradients[i]!;
      });
      loss += this.#echoTerm(s, current, offset, gradients, metrics);
    });
    const entropies = this.#entropyTerm(part, scores.entropies, metrics);
    loss += entropies.loss;
    metrics.add('loss', loss);
    if (!Number.isFinite(loss)) {
      throw new NonFiniteError(`loss of sequences ${part.join(', ')}: not finite (${loss})`);
    }
    return {
      loss,
      gradients: { logprobs: gradients, entropies: entropies.gradients, values: null },
      metrics: metrics.build(),
    };
  }

  #sampledScores(scores: ArrayLike<number>, offset: number, s: number, name: string): Float64Array {
    const { targets, sampledSlots } = this.#layouts[s]!;
    return scoresAt(scores, offset, sampledSlots, { name, sequence: s, targets });
  }

  #input(s: number, logprobs: Float64Array): TokenLossInput {
    const { advantages, logprobsOld, logprobsEngine } = this.#fixed[s]!;
    const old = logprobsOld ?? logprobs.slice();
    const weigh = this.#settings.policyLoss === 'gspo' ? sequenceImportanceWeights : importanceWeights;
    const weights =
      logprobsEngine === null
        ? new Float64Array(logprobs.length).fill(1)
        : weigh(old, logprobsEngine, this.#settings.importanceCap);
    return { logprobs, logprobsOld: old, advantages, weights, chosen: this.#chosen?.[s] ?? null };
  }

  #policyTerm({ fixed, input, gradients, policyWeight }: SequencePart, metrics: MetricBuilder): number {
    const output = POLICY_LOSSES[this.#settings.policyLoss](input, this.#settings);
    const count = input.logprobs.length;
    output.gradients.forEach((gradient, i) => {
      gradients[i]! += policyWeight * gradient;
    });
    const loss = policyWeight * sum(output.losses);
    metrics.add('policyLoss', loss);
    metrics.observe('logprob', sum(input.logprobs), count);
    if (this.#settings.policyLoss !== 'negative-log-likelihood') {
      metrics.observe('clipFraction', output.clipped, count);
      metrics.observe('dualClipFraction', output.dualClipped, count);
      if (input.chosen !== null) metrics.add('chosenTokens', sum(input.chosen));
      observeRatios(input, metrics);
      if (fixed.logprobsEngine !== null)
        observeWeights(input, fixed.logprobsEngine, this.#settings.importanceCap, metrics);
    }
    return loss;
  }

  #klTerm({ fixed, input, gradients, termWeight }: SequencePart, metrics: MetricBuilder): number {
    const { logprobsRef } = fixed;
    if (logprobsRef === null) return 0;
    observeReference(input.logprobs, logprobsRef, metrics);
    const { klPlace, klEstimator, klBeta } = this.#settings;
    if (klPlace !== 'loss' || klBeta === 0) return 0;
    let loss = 0;
    input.logprobs.forEach((logprob, i) => {
      loss += termWeight * klBeta * klEstimate(klEstimator, logprob, logprobsRef[i]!);
      gradients[i]! += termWeight * klBeta * klGradient(klEstimator, logprob, logprobsRef[i]!);
    });
    metrics.add('klLoss', loss);
    return loss;
  }

  #lldsTerm({ input, gradients }: SequencePart, metrics: MetricBuilder): number {
    if (this.#lldsWeight === 0) return 0;
    const { logprobs, logprobsOld, advantages } = input;
    const loss = addLlds(logprobs, logprobsOld, advantages, this.#lldsWeight, gradients);
    metrics.add('lldsLoss', loss);
    return loss;
  }

  #echoTerm(
    s: number,
    current: ArrayLike<number>,
    offset: number,
    gradients: Float64Array,
    metrics: MetricBuilder,
  ): number {
    if (this.#echoWeight === 0) return 0;
    const { targets, environmentSlots } = this.#layouts[s]!;
    const where = { name: 'log-probability', sequence: s, targets };
    const logprobs = scoresAt(current, offset, environmentSlots, where);
    const { loss, gradient } = echoLoss(logprobs, this.#echoWeight);
    for (const slot of environmentSlots) gradients[offset + slot] = gradient;
    metrics.add('echoLoss', loss);
    metrics.observe('environmentLogprob', sum(logprobs), logprobs.length);
    return loss;
  }

  #entropyTerm(
    part: readonly number[],
    entropies: ArrayLike<number> | undefined,
    metrics: MetricBuilder,
  ): { readonly loss: number; readonly gradients: Float64Array | null } {
    const bonus = this.#settings.entropyBonus;
    if (entropies === undefined || (entropies.length === 0 && bonus === 0)) {
      if (bonus !== 0)
        throw new InvalidInputError('the entropy bonus needs entropies, got none', 'entropies');
      return { loss: 0, gradients: null };
    }
    const offsets = offsetsOf(this.#layouts, part, entropies, 'entropies');
    const gradients = new Float64Array(entropies.length);
    let loss = 0;
    part.forEach((s, p) => {
      const values = this.#sampledScores(entropies, offsets[p]!, s, 'entropy');
      metrics.observe('entropy', sum(values), values.length);
      if (bonus === 0) return;
      const term = entropyLoss(values, bonus * this.#termWeights[s]!);
      loss += term.loss;
      for (const slot of this.#layouts[s]!.sampledSlots) gradients[offsets[p]! + slot] = term.gradient;
    });
    if (bonus !== 0) metrics.add('entropyLoss', loss);
    return { loss, gradients: bonus === 0 ? null : gradients };
  }
}

function fixedTokens(
  sequence: ObjectiveSequence,
  { sampled, length }: SequenceLayout,
  settings: AlgorithmSettings,
): FixedTokens {
  const optional = (values: ArrayLike<number> | undefined, name: string): Float64Array | null =>
    values === undefined ? null : pick(values, sampled, length, name);
  const supervised = settings.policyLoss === 'negative-log-likelihood';
  const advantages = supervised
    ? new Float64Array(sampled.length)
    : optional(sequence.advantages, 'advantages');
  if (advantages === null) {
    throw new InvalidInputError(`${settings.policyLoss} needs advantages, got none`, 'advantages');
  }
  const logprobsRef = optional(sequence.logprobsRef, 'logprobsRef');
  if (logprobsRef === null && settings.klPlace === 'loss' && settings.klBeta !== 0) {
    throw new InvalidInputError('KL in the loss needs logprobsRef, got none', 'logprobsRef');
  }
  return {
    advantages,
    logprobsOld: supervised ? null : optional(sequence.logprobsOld, 'logprobsOld'),
    logprobsRef,
    logprobsEngine: supervised ? null : optional(sequence.logprobsEngine, 'logprobsEngine'),
  };
}
