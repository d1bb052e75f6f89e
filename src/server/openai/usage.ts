import type { RolloutUsage } from '../../rollout/index.js';

/** Usage of a whole request. */
export interface Usage {
  /** First prompt, once, and the passages that searches put into each choice. */
  readonly prompt_tokens: number;
  /** All sampled tokens of all choices. */
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: {
    /** The beginning of the first prompt that was shared with an earlier request instead of computed. */
    readonly cached_tokens: number;
  };
  readonly completion_tokens_details: {
    /** Sampled outside the answers. */
    readonly reasoning_tokens: number;
  };
  readonly searchloop: {
    readonly searches: number;
    /** The part of `prompt_tokens` that searches put in. */
    readonly injected_tokens: number;
    readonly model_version: string;
  };
}

/** @param usages one for each choice; they share their first prompt */
export function sumUsage(usages: readonly RolloutUsage[], modelVersion: string): Usage {
  const sum = (key: keyof RolloutUsage): number => usages.reduce((total, usage) => total + usage[key], 0);
  const first = usages[0];
  const injected = sum('injectedTokens');
  const prompt = (first ? first.promptTokens - first.injectedTokens : 0) + injected;
  const completion = sum('completionTokens');
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    // The choice that shared least computed the prompt; the others share it with that one.
    prompt_tokens_details: {
      cached_tokens: first ? Math.min(...usages.map((usage) => usage.cachedTokens)) : 0,
    },
    completion_tokens_details: { reasoning_tokens: sum('reasoningTokens') },
    searchloop: { searches: sum('searches'), injected_tokens: injected, model_version: modelVersion },
  };
}
