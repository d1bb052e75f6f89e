// Flags of commands that run many rollouts over questions, and the settings they stand for.

import type { Command } from 'commander';
import type { Config } from '../config/index.js';
import { ConfigError } from '../errors.js';
import { wholeNumber } from './flag-values.js';

export interface RolloutFlags {
  readonly data?: string;
  readonly index?: string;
  readonly retrieval?: string;
  readonly budget?: number;
  readonly topK?: number;
  readonly turnTokens?: number;
  readonly observationTokens?: number;
  readonly passageTokens?: number;
}

export function addRolloutFlags(command: Command): Command {
  return command
    .option('--data <file>', 'questions with gold answers, JSONL (evaluation.data)')
    .option('--index <name>', 'name or folder of an index (retrieval.index)')
    .option('--retrieval <kind>', 'hnsw, bm25, hybrid or remote (retrieval.kind)')
    .option('--budget <number>', 'turns that may act (rollout.actionBudget)', wholeNumber(1))
    .option('--top-k <number>', 'passages of a search (rollout.topK)', wholeNumber(1))
    .option('--turn-tokens <number>', 'most tokens of a turn (rollout.turnTokens)', wholeNumber(1))
    .option('--observation-tokens <number>', 'most tokens of an observation', wholeNumber(1))
    .option('--passage-tokens <number>', 'most tokens of one passage', wholeNumber(1));
}

/** `section.key` to value, for `contextOf`. */
export function settingsOf(flags: RolloutFlags): Record<string, unknown> {
  return {
    'evaluation.data': flags.data,
    'retrieval.index': flags.index,
    'retrieval.kind': flags.retrieval,
    'rollout.actionBudget': flags.budget,
    'rollout.topK': flags.topK,
    'rollout.turnTokens': flags.turnTokens,
    'rollout.observationTokens': flags.observationTokens,
    'rollout.passageTokens': flags.passageTokens,
  };
}

/** @throws {ConfigError} nobody named a question file */
export function questionFile(config: Pick<Config, 'evaluation'>): string {
  if (config.evaluation.data === null)
    throw new ConfigError('expected a file of questions: give --data FILE or set evaluation.data');
  return config.evaluation.data;
}
