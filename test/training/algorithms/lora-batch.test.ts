// The batches that PyTorch trained on: from their log-probabilities and rewards to its losses.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type AlgorithmSettings,
  algorithmSettings,
  computeAdvantages,
  createPolicyObjective,
  createValueObjective,
  type ObjectiveSequence,
  summariseMetrics,
} from '../../../src/training/algorithms/index.js';

interface LoraSequence {
  readonly groupId: string;
  readonly reward: number;
  readonly lossMask: number[];
  readonly logp: number[];
  readonly logpOld: number[];
  readonly logpRef: number[];
  readonly values: number[];
  readonly valuesOld: number[];
  readonly advantageGrpo: number;
  readonly advantagesWhitened: number[];
  readonly advantagesWhitenedLambda: number[];
}

interface LoraCase {
  readonly case: string;
  readonly loss: number;
  readonly clipFraction?: number;
  readonly approxKl?: number;
  readonly meanK3?: number;
}

const folder = join(__dirname, '..', '..', 'fixtures', 'lora');
const decoders = readdirSync(folder);
const read = (decoder: string, file: string) => JSON.parse(readFileSync(join(folder, decoder, file), 'utf8'));

test('there are four', () => expect(decoders).toHaveLength(4));

describe.each(decoders)('%s', (decoder) => {
  const batch = read(decoder, 'batch.json') as { tokenSumNorm: number; sequences: LoraSequence[] };
  const cases = (read(decoder, 'cases.json') as { cases: LoraCase[] }).cases;
  const caseOf = (name: string): LoraCase => cases.find((c) => c.case === name) as LoraCase;
  const rollouts = batch.sequences.map((s) => ({
    lossMask: s.lossMask,
    groupId: s.groupId,
    reward: s.reward,
    logprobsOld: s.logpOld,
    logprobsRef: s.logpRef,
    valuesOld: s.valuesOld,
  }));
  const all = rollouts.map((_, i) => i);
  const scoresOf = (name: 'logp' | 'values'): Float32Array =>
    Float32Array.from(batch.sequences.flatMap((s) => s[name].filter((_, t) => s.lossMask[t] === 1)));

  function sequencesFor(settings: AlgorithmSettings): ObjectiveSequence[] {
    const { advantages, returns } = computeAdvantages(rollouts, settings);
    return rollouts.map((rollout, i) => ({
      ...rollout,
      advantages: advantages[i]!,
      ...(returns && { returns: returns[i]! }),
    }));
  }

  /** Relative to the size of the terms: surrogate and KL may all but cancel, and both were added in float32. */
  function checkLoss(loss: number, name: string, terms: readonly number[] = [loss]): void {
    const size = terms.reduce((sum, term) => sum + Math.abs(term), 0);
    expect(Math.abs(loss - caseOf(name).loss)).toBeLessThan(1e-5 * size);
  }

  function checkMetrics(metrics: Readonly<Record<string, number>>, name: string): void {
    expect(metrics['clipFraction']).toBeCloseTo(caseOf(name).clipFraction!, 6);
    expect(metrics['approxKlK1']).toBeCloseTo(caseOf(name).approxKl!, 5);
    expect(metrics['kl']! / caseOf(name).meanK3!).toBeCloseTo(1, 5);
  }

  test('sft', () => {
    const objective = createPolicyObjective(rollouts, algorithmSettings('sft'));
    checkLoss(objective.evaluate(all, { logprobs: scoresOf('logp') }).loss, 'sft');
  });

  test.each(['seq-mean-token-mean', 'token-mean', 'seq-mean-token-sum-norm'] as const)(
    'grpo, %s',
    (aggregation) => {
      const settings = algorithmSettings('grpo', {
        aggregation,
        tokenSumNorm: batch.tokenSumNorm,
        klBeta: 0.05,
      });
      const sequences = sequencesFor(settings);
      sequences.forEach(({ advantages, lossMask }, i) => {
        const t = Array.from(lossMask).indexOf(1);
        expect(advantages![t]).toBeCloseTo(batch.sequences[i]!.advantageGrpo, 5);
      });
      const objective = createPolicyObjective(sequences, settings);
      const { loss, metrics } = objective.evaluate(all, { logprobs: scoresOf('logp') });
      const figures = summariseMetrics(metrics);
      checkLoss(loss, `grpo.${aggregation}`, [figures['policyLoss']!, figures['klLoss']!]);
      checkMetrics(figures, `grpo.${aggregation}`);
    },
  );

  test.each([
    ['', 1, 1],
    ['.lambda', 0.99, 0.95],
  ] as const)('ppo%s and its value loss', (suffix, gamma, gaeLambda) => {
    const settings = algorithmSettings('ppo', { gamma, gaeLambda, klBeta: 0.05 });
    const sequences = sequencesFor(settings);
    const stored = suffix === '' ? 'advantagesWhitened' : 'advantagesWhitenedLambda';
    sequences.forEach(({ advantages, lossMask }, i) => {
      Array.from(lossMask).forEach((m, t) => {
        if (m === 1) expect(advantages![t]).toBeCloseTo(batch.sequences[i]![stored][t]!, 5);
      });
    });
    const policy = createPolicyObjective(sequences, settings).evaluate(all, { logprobs: scoresOf('logp') });
    checkLoss(policy.loss, `ppo${suffix}`);
    checkMetrics(summariseMetrics(policy.metrics), `ppo${suffix}`);
    checkLoss(
      createValueObjective(sequences, settings).evaluate(all, { values: scoresOf('values') }).loss,
      `value${suffix}`,
    );
  });
});
