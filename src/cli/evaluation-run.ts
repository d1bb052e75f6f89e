// An evaluation put together: policy, index, the settings that shape its answers, the report.

import type { Config } from '../config/index.js';
import type { AdapterInfo, Engine } from '../engine/index.js';
import {
  type EvaluationReport,
  evaluate,
  type Question,
  reportOf,
  settingsDigest,
} from '../evaluation/index.js';
import { slotRunners } from '../loop/index.js';
import type { Retriever } from '../retrieval/index.js';
import { adapterFor, loadPrompts, METHODS, type MethodName, type RolloutRunner } from '../rollout/index.js';
import {
  openIndex,
  openRunner,
  type PolicyModel,
  preparePolicyFiles,
  rolloutParts,
  type StartOptions,
  searchWidth,
  startPolicyModel,
} from './application.js';

/** Several sampled answers to each question. */
export interface Sampling {
  readonly samples: number;
  readonly temperature: number;
}

export interface MeasuredPolicy {
  readonly method: MethodName;
  /** PEFT folder; `base` is the plain model; absent: what answers otherwise. */
  readonly adapter?: string;
  /** null: one greedy answer. */
  readonly sampling: Sampling | null;
  /** Folder of the results. */
  readonly output?: string;
}

export async function runEvaluation(
  questions: readonly Question[],
  measured: MeasuredPolicy,
  config: Config,
  start: StartOptions,
): Promise<EvaluationReport> {
  const { method, sampling, output } = measured;
  const policy = await openPolicy(config, sampling, start);
  try {
    const adapter = await chosenAdapter(measured, config, policy.engine);
    const retriever = METHODS[method].searches ? await openIndex(config, start) : null;
    try {
      const settings = {
        ...settingsOf(config, method, policy.engine, retriever),
        adapter: adapter === null ? null : (adapter?.version ?? policy.engine.liveAdapter?.version ?? null),
        ...(sampling === null ? {} : { sampling: samplingSettings(config, sampling, policy.engine) }),
      };
      const results = await evaluate({
        runner:
          sampling === null ? openRunner(config, policy, retriever) : inSlots(config, policy, retriever),
        retriever,
        tokenizer: policy.encoding.tokenizer,
        method,
        questions,
        concurrency: config.evaluation.concurrency,
        settings,
        ...(sampling === null ? {} : { ...sampling, seed: config.evaluation.seed }),
        ...(adapter === undefined ? {} : { adapter: adapter?.name ?? null }),
        ...(output === undefined ? {} : { output }),
        ...start,
      });
      return reportOf(results, { digest: settingsDigest(settings), settings }, config.evaluation);
    } finally {
      await retriever?.close();
    }
  } finally {
    await policy.close();
  }
}

/** Samples come from an engine in lock-step mode, a slot for each that is answered at once, so that they can be repeated. */
async function openPolicy(
  config: Config,
  sampling: Sampling | null,
  start: StartOptions,
): Promise<PolicyModel> {
  const files = await preparePolicyFiles(config, start);
  if (sampling === null) return startPolicyModel(config, files);
  const maxSequences = Math.min(config.engine.maxSequences, config.evaluation.concurrency);
  return startPolicyModel({ ...config, engine: { ...config.engine, maxSequences } }, files, {
    lockStep: true,
  });
}

const inSlots = (config: Config, policy: PolicyModel, retriever: Retriever | null): RolloutRunner[] =>
  slotRunners(policy.engine, rolloutParts(config, policy, retriever));

const BASE = 'base';

/** null is the plain model, undefined the live adapter. */
async function chosenAdapter(
  { method, adapter }: MeasuredPolicy,
  { model }: Config,
  engine: Engine,
): Promise<AdapterInfo | null | undefined> {
  if (adapter === undefined) return adapterFor(method, model.liveMethods);
  if (adapter === BASE) return null;
  return engine.loadAdapter('evaluated', adapter, { replace: true });
}

function settingsOf(
  config: Config,
  method: MethodName,
  { info: { modelId, modelDigest, fingerprint, maxSequenceTokens } }: Engine,
  retriever: Retriever | null,
): Record<string, unknown> {
  return {
    method,
    model: modelId,
    modelDigest,
    fingerprint,
    index: retriever?.snapshotId ?? null,
    retriever: retriever?.info.kind ?? null,
    ef: searchWidth(config, retriever),
    sequenceTokens: maxSequenceTokens,
    rollout: config.rollout,
    prompt: METHODS[method].promptDigest(loadPrompts(config.rollout)),
  };
}

/** What decides a sample beside its question and number. More samples may be asked of the same settings. */
function samplingSettings(
  { evaluation, engine }: Config,
  { temperature }: Sampling,
  { info }: Engine,
): Record<string, unknown> {
  return {
    temperature,
    seed: evaluation.seed,
    slots: info.maxSequences,
    prefillChunkTokens: engine.prefillChunkTokens,
    prefixCacheTokens: engine.prefixCacheTokens,
  };
}
