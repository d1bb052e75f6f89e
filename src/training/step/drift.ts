// How far a policy is from its reference, where no update tells it.

import { NonFiniteError } from '../../errors.js';
import { mean } from '../../util/mean.js';
import { klEstimate } from '../algorithms/index.js';
import type { TrainedPart } from '../trainer/trainable.js';
import { type StepControl, scoreSequences } from './accumulate.js';
import { sampledTokens, type TrainingSequence } from './sequences.js';
import { withValuesOf } from './values.js';

/** Rollouts that are read for it. */
const MOST_READ = 8;

/**
 * @param reference  folder, or `base`
 * @returns `kl` (k3) and `klK1` to the reference and `entropy`, nats, means over sampled tokens of the first rollouts; nothing
 *   where none was sampled
 * @throws {NonFiniteError} one of them is no number
 */
export async function driftOf(
  policy: TrainedPart,
  rollouts: readonly TrainingSequence[],
  reference: string,
  control: StepControl,
): Promise<Readonly<Record<string, number>>> {
  const read = rollouts.slice(0, MOST_READ);
  const targets = read.map(sampledTokens);
  const rows = read.map(({ tokenIds }) => Array.from(tokenIds));
  const score = () => scoreSequences(policy.model, rows, targets, control);
  const here = await score();
  const there = (await withValuesOf(policy, reference, score)).flatMap(({ logprobs }) => [...logprobs]);
  const logprobs = here.flatMap((scores) => [...scores.logprobs]);
  if (logprobs.length === 0) return {};
  const estimate = (name: 'k1' | 'k3') => mean(logprobs.map((now, i) => klEstimate(name, now, there[i]!)));
  const entropy = mean(here.flatMap(({ entropies }) => [...entropies]));
  const figures = { kl: estimate('k3'), klK1: estimate('k1'), entropy };
  for (const [name, value] of Object.entries(figures))
    if (!Number.isFinite(value)) throw new NonFiniteError(`${name} of the rollouts: not finite (${value})`);
  return figures;
}
