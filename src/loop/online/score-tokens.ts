// Log-probabilities of given tokens under another version, by the engine itself: each token is forced, the raw
// log-probability does not see the force.

import { type Generator, RAW_POLICY } from '../../engine/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';

const FORCE = 100;

/**
 * @param adapter  name or version; null is the base model
 * @returns [T], nats; 0 where the token was not sampled
 */
export async function scoreTokens(
  generator: Generator,
  record: Pick<TrajectoryRecord, 'tokenIds' | 'origin'>,
  adapter: string | null,
): Promise<Float64Array> {
  const { tokenIds, origin } = record;
  const logprobs = new Float64Array(tokenIds.length);
  const sequence = await generator.open({ adapter, maxLength: tokenIds.length + 1 });
  try {
    let unread: number[] = [];
    for (const [at, id] of tokenIds.entries()) {
      if (origin[at] === 'prompt' || origin[at] === 'environment') {
        unread.push(id);
        continue;
      }
      if (unread.length > 0) sequence.append(unread);
      unread = [];
      const turn = sequence.generate({
        sampling: { ...RAW_POLICY, temperature: 0, logitBias: { [id]: FORCE } },
        maxTokens: 1,
        stopStrings: [],
        stopTokenIds: [],
        ignoreEos: true,
      });
      let given = 0;
      for await (const { token } of turn) {
        logprobs[at] = token.id === id ? token.logprob : Number.NaN;
        given++;
      }
      if (given === 0) logprobs[at] = Number.NaN;
    }
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
