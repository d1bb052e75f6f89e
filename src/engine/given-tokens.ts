// Scores tokens that are given, through the path that decodes: each one is forced, and the raw log-probability does
// not see the force.

import type { GenerationSequence, SampledToken } from './generator.js';
import { ONE_GREEDY_TOKEN } from './sampler/parameters.js';

/** The sampler adds it to the token's logit. */
const FORCE = 100;

export interface GivenToken {
  /** Index into the given tokens. */
  readonly at: number;
  /** What the engine took; another id where even the force did not do, which is where logits are not finite. */
  readonly token: SampledToken;
}

/**
 * Yields the tokens that are scored, in order; the others are only read.
 * @param sequence  open and empty; the caller closes it
 * @param topLogprobs  likeliest tokens in `token.alternatives`
 */
export async function* scoreGivenTokens(
  sequence: GenerationSequence,
  tokenIds: readonly number[],
  isScored: (at: number) => boolean,
  topLogprobs = 0,
): AsyncGenerator<GivenToken> {
  let unread: number[] = [];
  for (const [at, id] of tokenIds.entries()) {
    if (!isScored(at)) {
      unread.push(id);
      continue;
    }
    if (unread.length > 0) sequence.append(unread);
    unread = [];
    const turn = sequence.generate({
      ...ONE_GREEDY_TOKEN,
      sampling: { ...ONE_GREEDY_TOKEN.sampling, logitBias: { [id]: FORCE } },
      ...(topLogprobs > 0 ? { topLogprobs } : {}),
    });
    for await (const { token } of turn) yield { at, token };
  }
}
