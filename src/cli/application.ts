// Puts the rooms together: model, engine, index and rollouts, as serve and ask use them.

import { type Config, homeFolder } from '../config/index.js';
import { createEngine, type Engine } from '../engine/index.js';
import { ensureModel, preparePrecision } from '../model/index.js';
import { createRetriever, ensureDemoIndex, type Retriever } from '../retrieval/index.js';
import { createRolloutRunner, loadPrompts, type RolloutRunner } from '../rollout/index.js';
import type { WorkerState } from '../runtime/index.js';
import { createTokenizer, type Tokenizer } from '../tokenizer/index.js';
import type { OnProgress } from '../util/progress.js';

export interface StartOptions {
  readonly onProgress?: OnProgress;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

export interface PolicyModel {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
}

/**
 * The policy model, fetched, imported and converted where needed, behind a running engine with the configured
 * adapters loaded.
 */
export async function openPolicyModel(
  config: Config,
  options: StartOptions & { readonly onState?: (state: WorkerState, error: Error | null) => void } = {},
): Promise<PolicyModel> {
  const home = homeFolder(config);
  const model = await ensureModel(config.model.policy, home, options);
  const graphs = await preparePrecision(home, model, config.engine.precision, options);
  const source = await model.readTokenizer();
  const engine = await createEngine({
    modelId: model.record.id,
    graphs,
    tokenizer: source,
    settings: config.engine,
    ...(options.onState ? { onState: options.onState } : {}),
  });
  try {
    for (const [name, folder] of Object.entries(config.model.adapters))
      await engine.loadAdapter(name, folder);
    if (config.model.liveAdapter !== null) await engine.setLiveAdapter(config.model.liveAdapter);
  } catch (error) {
    await engine.close();
    throw error;
  }
  return { engine, tokenizer: createTokenizer(source) };
}

/** The configured retriever; the demo index is built where it is asked for and missing. */
export async function openIndex(config: Config, options: StartOptions = {}): Promise<Retriever> {
  if (config.retrieval.kind !== 'remote' && config.retrieval.index === 'demo')
    await ensureDemoIndex(config, options);
  return createRetriever(config, options);
}

export function openRunner(config: Config, policy: PolicyModel, retriever: Retriever | null): RolloutRunner {
  return createRolloutRunner({
    generator: policy.engine,
    retriever,
    tokenizer: policy.tokenizer,
    config: config.rollout,
    prompts: loadPrompts(config.rollout),
  });
}
