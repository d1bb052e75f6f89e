// A whole server with the loop over the stored tiny model: engine, store, trainer in the pool, real HTTP. The reward is a
// share of the token ids, which any policy can learn to raise; exact match stays where it is, so the gate lets it pass.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openPolicyModel, openRunner, type PolicyModel } from '../../../src/cli/application.js';
import { openServerStore, recordKeeping } from '../../../src/cli/store.js';
import { dataFolder, loadConfig } from '../../../src/config/index.js';
import {
  createPriority,
  type LoopOptions,
  loopFolder,
  type OpenedLoop,
  openLoop,
  type Priority,
} from '../../../src/loop/index.js';
import type { GradeAnswers } from '../../../src/loop/online/rewards.js';
import { loadPrompts } from '../../../src/rollout/index.js';
import { createServer } from '../../../src/server/index.js';
import type { SearchloopServer } from '../../../src/server/server.js';
import { createLogger } from '../../../src/telemetry/index.js';
import type { TrajectoryRecord, TrajectoryStore } from '../../../src/trajectory/index.js';
import { createMemoryRetriever } from '../../support/memory-retriever.js';
import { PASSAGES } from '../../support/rollout-kit.js';

export interface RunningHouse {
  readonly url: string;
  readonly loop: OpenedLoop['loop'];
  readonly store: TrajectoryStore;
  readonly policy: PolicyModel;
  readonly priority: Priority;
  readonly server: SearchloopServer;
  readonly notes: string[];
  readonly failures: string[];
  close(): Promise<void>;
}

const logger = createLogger({ level: 'silent' });

/** Share of low ids among the sampled tokens. */
function lowShare({ tokenIds, lossMask }: Pick<TrajectoryRecord, 'tokenIds' | 'lossMask'>): number {
  const sampled = tokenIds.filter((_, t) => lossMask[t] === 1);
  return sampled.filter((id) => id < 256).length / Math.max(1, sampled.length);
}

export const byLowIds: GradeAnswers = async (answers) =>
  answers.map(({ record }) => ({
    scores: {
      reward: lowShare(record),
      em: 0,
      subEm: 0,
      f1: 0,
      formatScore: 0,
      wellFormed: false,
      searches: record.searches.length,
    },
    source: 'gold',
    rule: 'share of low ids',
  }));

export function writeGateQuestions(path: string, count: number): string {
  const lines = Array.from({ length: count }, (_, i) =>
    JSON.stringify({ id: `g${i}`, question: `What is number ${i}?`, golden_answers: [`n${i}`] }),
  );
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

/** Settings small enough for steps of seconds. */
export const TINY_LOOP = {
  'model.policy': 'tiny-llama',
  'engine.precision': 'fp32',
  'engine.maxSequences': 8,
  'engine.maxSequenceTokens': 640,
  'engine.threads': 1,
  'rollout.turnTokens': 4,
  'rollout.actionBudget': 1,
  'rollout.observationTokens': 96,
  'store.commitTimeoutMs': 30_000,
  'training.learningRate': 0.01,
  'training.warmupShare': 0,
  'training.rank': 4,
  'training.alpha': 8,
  'training.batchSequences': 8,
  'training.groupSize': 4,
  'training.turnTokens': 10,
  'training.threads': 1,
  'training.niceness': 0,
  'loop.minQuestions': 2,
  'loop.idleMs': 10,
  'loop.pollMs': 50,
  'loop.maxKl': 5,
  'loop.maxValidityLoss': 1,
} as const;

/** @param home  holds the imported model `tiny-llama`; everything else is made in it */
export async function openLoopHouse(
  home: string,
  flags: Readonly<Record<string, unknown>> = {},
  {
    onWait,
    ...more
  }: Partial<Pick<LoopOptions, 'gate' | 'grade' | 'signal'>> & {
    readonly onWait?: (engine: PolicyModel['engine']) => void;
  } = {},
): Promise<RunningHouse> {
  const config = loadConfig({
    env: {},
    flags: {
      'paths.home': home,
      'paths.data': join(home, 'data'),
      'server.port': 0,
      'server.shutdownGraceMs': 0,
      'loop.enabled': true,
      ...TINY_LOOP,
      ...flags,
    },
  });
  const policy = await openPolicyModel(config);
  const store = openServerStore(config, logger) as TrajectoryStore;
  const { engine, encoding, tokenizerSource } = policy;
  await store.useAuditor({ modelDigest: engine.info.modelDigest, tokenizer: tokenizerSource });
  const retriever = createMemoryRetriever({ passages: PASSAGES });
  const priority = createPriority(engine, config.loop);
  const notes: string[] = [];
  const failures: string[] = [];
  const opened = await openLoop({
    config,
    folder: loopFolder(dataFolder(config)),
    home,
    engine,
    priority,
    parts: { retriever, tokenizer: encoding.tokenizer, encoding, prompts: loadPrompts(config.rollout) },
    store,
    threads: 1,
    grade: byLowIds,
    onNote: (line) => notes.push(line),
    onFailure: (error, doing) => failures.push(`${doing}: ${error.message}`),
    onWait: () => onWait?.(engine),
    ...more,
  }).catch(async (error) => {
    await store.close();
    await policy.close();
    throw error;
  });
  const runner = openRunner(
    config,
    { engine: priority.users, encoding },
    retriever,
    recordKeeping(store, config, logger),
  );
  const server = createServer({
    config,
    store,
    logger,
    loop: () => opened.loop,
    parts: {
      policy: () => ({ state: 'ready', value: { runner, engine, tokenizer: encoding.tokenizer } }),
      index: () => ({ state: 'ready', value: retriever }),
    },
  });
  const { url } = await server.listen();
  // Until it has read the keys, a server lets nobody in.
  while ((await fetch(`${url}/v1/models`)).status === 503) await sleep(20);
  return {
    url,
    loop: opened.loop,
    store,
    policy,
    priority,
    server,
    notes,
    failures,
    async close() {
      await server.close();
      await opened.close();
      await store.close();
      await policy.close();
    },
  };
}
