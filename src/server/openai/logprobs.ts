// Log-probabilities of the answer's tokens. `logprob` is the raw policy's, whatever the temperature; what
// the token was sampled with stands beside it as `sampling_logprob`.

import type { SampledToken } from '../../engine/index.js';
import type { Policy } from '../context.js';

interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  /** UTF-8; a token may hold a part of a character. */
  readonly bytes: readonly number[];
}

export interface LogprobEntry extends TokenLogprob {
  readonly sampling_logprob: number;
  readonly top_logprobs: readonly TokenLogprob[];
}

export interface ChoiceLogprobs {
  readonly content: readonly LogprobEntry[];
  readonly refusal: null;
}

/** What the API says for "very unlikely"; JSON has no infinity. */
const LEAST_LOGPROB = -9999;

const decoder = new TextDecoder();

export function logprobEntries(
  tokens: readonly SampledToken[],
  tokenizer: Pick<Policy['tokenizer'], 'tokenBytes'>,
): LogprobEntry[] {
  const entry = (id: number, logprob: number): TokenLogprob => {
    const bytes = tokenizer.tokenBytes(id);
    return { token: decoder.decode(bytes), logprob: finite(logprob), bytes: [...bytes] };
  };
  return tokens.map((token) => ({
    ...entry(token.id, token.logprob),
    sampling_logprob: finite(token.samplingLogprob),
    top_logprobs: (token.alternatives ?? []).map((item) => entry(item.id, item.logprob)),
  }));
}

function finite(value: number): number {
  return Number.isFinite(value) ? Math.max(value, LEAST_LOGPROB) : LEAST_LOGPROB;
}
