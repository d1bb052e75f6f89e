// Rewards by a program in any language: a batch of answers in by HTTP, numbers out.

import { z } from 'zod';
import { IntegrityError } from '../../errors.js';
import { askScorer } from './ask-scorer.js';
import { checkedRewards, plainItem, type Scorer } from './scorer.js';

export interface HttpScorerOptions {
  readonly url: string;
  /** Answers of one request. Default 64. */
  readonly batchSize?: number;
  // Tests are in a hurry.
  readonly timeoutMs?: number;
  readonly retries?: number;
  readonly retryDelayMs?: number;
}

const answer = z.object({ rewards: z.unknown() });

/** POST `{"records": [{id, question, answer, golden_answers, ...}]}`, answered by `{"rewards": [number or null]}`. */
export function createHttpScorer(options: HttpScorerOptions): Scorer {
  const { url, batchSize = 64, timeoutMs = 60_000, retries = 2, retryDelayMs = 500 } = options;
  return {
    name: `http:${url}`,
    async score(items, signal) {
      const rewards: (number | null)[] = [];
      for (let start = 0; start < items.length; start += batchSize) {
        const batch = items.slice(start, start + batchSize);
        const body = { records: batch.map(plainItem) };
        const parsed = answer.safeParse(
          await askScorer(url, body, { timeoutMs, retries, retryDelayMs, signal }),
        );
        if (!parsed.success) throw new IntegrityError(`${url}: expected {"rewards": [...]}`);
        rewards.push(...checkedRewards(parsed.data.rewards, batch.length, url));
      }
      return rewards;
    },
  };
}
