// `return_token_ids`: what trainers need to learn from an answer without encoding text again.

import type { TrajectoryRecord } from '../../trajectory/index.js';

export interface TokenIds {
  readonly prompt_token_ids: readonly number[];
  /** Every sampled token in order, also those that no text shows. */
  readonly token_ids: readonly number[];
  /** All that follows the prompt, passages too: aligned arrays. */
  readonly sequence: {
    readonly token_ids: readonly number[];
    /** 1 where the policy sampled and is to be trained. */
    readonly loss_mask: readonly (0 | 1)[];
    /** Nats, raw policy. */
    readonly logprobs: readonly number[];
    /** Nats, the distribution that was sampled from. */
    readonly sampling_logprobs: readonly number[];
  };
}

export function tokenIdsOf(record: TrajectoryRecord): TokenIds {
  const { origin, tokenIds } = record;
  const first = origin.findIndex((item) => item !== 'prompt');
  const start = first < 0 ? origin.length : first;
  return {
    prompt_token_ids: tokenIds.slice(0, start),
    token_ids: tokenIds.filter((_, at) => origin[at] === 'policy' || origin[at] === 'policyInformation'),
    sequence: {
      token_ids: tokenIds.slice(start),
      loss_mask: record.lossMask.slice(start),
      logprobs: record.logprobs.slice(start),
      sampling_logprobs: record.samplingLogprobs.slice(start),
    },
  };
}

/** Adapter version that sampled the last token. */
export function versionOf(record: TrajectoryRecord, fallback: string): string {
  return record.versions.at(-1)?.adapterVersion ?? fallback;
}
