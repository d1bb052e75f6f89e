// From the wire's fields to what a rollout takes.

import type { RolloutConfig } from '../../config/index.js';
import { type EngineInfo, LEAST_TEMPERATURE } from '../../engine/index.js';
import type { RolloutRequest } from '../../rollout/index.js';
import type { ModelTarget } from './model-name.js';
import { invalidField } from './request-error.js';
import type { ChatBody } from './schema/chat.js';

/** `top_p: 0` is legal on the wire and means the best token alone. */
const LEAST_TOP_P = 1e-9;

export interface RequestFrame {
  readonly body: ChatBody;
  readonly target: ModelTarget;
  readonly info: EngineInfo;
  readonly rollout: RolloutConfig;
  /** Id of the completion. */
  readonly id: string;
}

/** Request of choice `choice`. Temperature absent: the configured one, but 1 when several choices are asked. */
export function rolloutRequestOf(frame: RequestFrame, choice: number): RolloutRequest {
  const { body, target, info } = frame;
  const n = body.n ?? 1;
  const temperature = body.temperature ?? (n > 1 ? 1 : frame.rollout.temperature);
  const limits = [body.max_tokens, body.max_completion_tokens].filter((limit) => limit !== undefined);
  return {
    method: target.method,
    messages: body.messages,
    sampling: {
      // Clients that avoid a 0 mean it.
      temperature: temperature < LEAST_TEMPERATURE ? 0 : temperature,
      topP: Math.max(body.top_p ?? 1, LEAST_TOP_P),
      topK: Math.max(body.top_k ?? 0, 0),
      minP: body.min_p ?? 0,
      frequencyPenalty: body.frequency_penalty ?? 0,
      presencePenalty: body.presence_penalty ?? 0,
      repetitionPenalty: body.repetition_penalty ?? 1,
      logitBias: body.logit_bias,
    },
    maxTokens: limits.length > 0 ? Math.min(...limits, info.maxSequenceTokens) : undefined,
    stop: body.stop,
    stopTokenIds: body.stop_token_ids,
    ignoreEos: body.ignore_eos,
    seed: body.seed === undefined ? undefined : choiceSeed(body.seed, choice),
    adapter: target.adapter,
    expectedVersion: target.adapterVersion,
    actionBudget: body.searchloop?.action_budget,
    topK: body.searchloop?.top_k,
    topLogprobs: body.logprobs ? (body.top_logprobs ?? 0) : undefined,
    forceAnswer: body.searchloop?.force_answer ?? true,
    id: n === 1 ? frame.id : `${frame.id}-${choice}`,
    groupId: n === 1 ? undefined : frame.id,
  };
}

/** @throws {RequestError} for token ids outside the vocabulary */
export function checkTokenIds(body: ChatBody, info: EngineInfo): void {
  const stray = (ids: readonly number[]) => ids.find((id) => id >= info.vocabSize);
  const bias = stray(Object.keys(body.logit_bias).map(Number));
  const stop = stray(body.stop_token_ids ?? []);
  const range = `expected token ids below the vocabulary's ${info.vocabSize}`;
  if (bias !== undefined) throw invalidField('logit_bias', `logit_bias: ${range}, received ${bias}`);
  if (stop !== undefined) throw invalidField('stop_token_ids', `stop_token_ids: ${range}, received ${stop}`);
}

/**
 * A seed of 32 bits for each choice. Choice 0 of a small seed keeps it, so that one and several choices,
 * and the command line, agree.
 */
export function choiceSeed(seed: number, choice: number): number {
  const wide = BigInt.asUintN(64, BigInt(seed));
  const folded = Number((wide ^ (wide >> 32n)) & 0xffff_ffffn);
  const base = seed >= 0 && seed < 2 ** 32 ? seed : folded;
  // Step of the golden ratio: distinct for all choices, far apart for neighbouring seeds.
  return (base + Math.imul(choice, 0x9e37_79b9)) >>> 0;
}
