import type { RewardConfig } from '../../config/index.js';
import { createHttpScorer } from './http-scorer.js';
import { createJudge } from './judge.js';
import { loadModuleScorer } from './module-scorer.js';
import type { Scorer } from './scorer.js';

export interface Scorers {
  /** In place of the built-in rule; null: the rule. */
  readonly scorer: Scorer | null;
  readonly judge: Scorer | null;
}

/**
 * What the settings name.
 * @param onNote  told of answers that the judge would not judge
 * @throws {ConfigError} a module that cannot be loaded
 */
export async function openScorers(settings: RewardConfig, onNote?: (line: string) => void): Promise<Scorers> {
  const { httpUrl, module, judgeUrl, judgeModel, judgeKey, judgeVotes } = settings;
  const scorer =
    httpUrl !== null
      ? createHttpScorer({ url: httpUrl })
      : module !== null
        ? await loadModuleScorer(module)
        : null;
  const judge =
    judgeUrl === null
      ? null
      : createJudge({ baseUrl: judgeUrl, model: judgeModel, apiKey: judgeKey, votes: judgeVotes, onNote });
  return { scorer, judge };
}
