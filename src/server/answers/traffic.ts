// Requests that leave it to the server: which version answers while a new one is on trial, and which are explored.

import type { LoopTraffic } from '../../loop/index.js';
import type { RolloutRequest } from '../../rollout/index.js';
import type { ModelTarget } from '../openai/model-name.js';
import type { ChatBody } from '../openai/schema/chat.js';

/**
 * A version on trial gets its share of the requests that ask for the live one. They go on asking for the live one: where the
 * trial ends before they begin, that answers.
 */
export function tried(target: ModelTarget, traffic: LoopTraffic | null, random = Math.random): ModelTarget {
  const canary = traffic?.canary ?? null;
  if (canary === null || target.adapter !== undefined || random() >= canary.share) return target;
  return { ...target, adapterVersion: canary.version };
}

/**
 * Answers that may be sampled from the raw policy, so that the loop can learn from them: one choice, kept, and nothing
 * said of sampling.
 */
export function mayExplore(body: ChatBody, { method }: ModelTarget): boolean {
  const said = [
    body.temperature,
    body.top_p,
    body.top_k,
    body.min_p,
    body.seed,
    body.frequency_penalty,
    body.presence_penalty,
    body.repetition_penalty,
  ];
  // Under `ignore_eos` the end is not the policy's.
  const isPlain = said.every((value) => value === undefined || value === null) && body.ignore_eos !== true;
  return (
    method === 'search-r1' && (body.n ?? 1) === 1 && isPlain && Object.keys(body.logit_bias).length === 0
  );
}

/** The request at temperature 1, marked in its record. */
export function explored(request: RolloutRequest): RolloutRequest {
  const { keeping, sampling } = request;
  if (keeping === null || keeping === undefined) return request;
  return {
    ...request,
    sampling: { ...sampling, temperature: 1, topP: 1, topK: 0, minP: 0 },
    keeping: { ...keeping, notes: { ...keeping.notes, source: 'explore' } },
  };
}
