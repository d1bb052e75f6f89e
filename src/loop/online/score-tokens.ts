// Log-probabilities of a record's tokens under another version, and how far two policies lie apart on them.

import { type Generator, scoreGivenTokens } from '../../engine/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';

/**
 * @param adapter  name or version; null is the base model
 * @returns [T], nats; 0 where the token was not sampled, NaN where the version does not give the token at all
 */
export async function scoreTokens(
  generator: Generator,
  record: Pick<TrajectoryRecord, 'tokenIds' | 'origin'>,
  adapter: string | null,
): Promise<Float64Array> {
  const { tokenIds, origin } = record;
  const isSampled = (at: number): boolean => origin[at] !== 'prompt' && origin[at] !== 'environment';
  const logprobs = Float64Array.from(tokenIds, (_, at) => (isSampled(at) ? Number.NaN : 0));
  const sequence = await generator.open({ adapter, maxLength: tokenIds.length + 1 });
  try {
    for await (const { at, token } of scoreGivenTokens(sequence, tokenIds, isSampled))
      if (token.id === tokenIds[at]) logprobs[at] = token.logprob;
    return logprobs;
  } finally {
    sequence.close();
  }
}

/**
 * Mean k3 of a policy against another over tokens that the first one sampled, nats a token: an estimate of
 * KL(first, second). NaN without a token.
 */
export function sampledKl(
  records: readonly {
    readonly own: ArrayLike<number>;
    readonly other: ArrayLike<number>;
    readonly mask: ArrayLike<number>;
  }[],
): number {
  let sum = 0;
  let count = 0;
  for (const { own, other, mask } of records)
    for (let t = 0; t < mask.length; t++) {
      if (mask[t] !== 1) continue;
      const log = Math.max(-20, Math.min(20, (other[t] as number) - (own[t] as number)));
      sum += Math.exp(log) - log - 1;
      count++;
    }
  return count === 0 ? Number.NaN : sum / count;
}
