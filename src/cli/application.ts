// Puts the rooms together: model, engine, index and rollouts, as serve and ask use them.

import { type Config, homeFolder } from '../config/index.js';
import { type AdapterFault, createEngine, type Engine, type Generator } from '../engine/index.js';
import { type EngineGraphs, ensureModel, preparePrecision } from '../model/index.js';
import { createRetriever, ensureDemoIndex, type Retriever } from '../retrieval/index.js';
import {
  type BackgroundEncoding,
  createBackgroundEncoding,
  createRolloutRunner,
  loadPrompts,
  type RolloutRunner,
  type RolloutRunnerOptions,
} from '../rollout/index.js';
import type { WorkerState } from '../runtime/index.js';
import type { TokenizerSource } from '../tokenizer/index.js';
import type { OnProgress } from '../util/progress.js';
import { shippedAdapter } from '../weights/index.js';

export interface StartOptions {
  readonly onProgress?: OnProgress;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

export interface PolicyModel {
  readonly engine: Engine;
  readonly encoding: BackgroundEncoding;
  readonly tokenizerSource: TokenizerSource;
  /** Ends its threads. */
  close(): Promise<void>;
}

interface EngineStart {
  readonly onState?: (state: WorkerState, error: Error | null) => void;
  readonly onAdapterFault?: (fault: AdapterFault) => void;
  /** Long texts are encoded on the calling thread until the worker for it can be had. */
  readonly onEncodingFailure?: (error: Error) => void;
  /** The engine gives each sequence the same bits in the same slot, whatever runs beside it. */
  readonly lockStep?: boolean;
}

/** What an engine is started from. */
export interface PolicyFiles {
  readonly modelId: string;
  readonly graphs: EngineGraphs;
  readonly tokenizerSource: TokenizerSource;
}

/** The policy model, fetched, imported and converted where needed. */
export async function preparePolicyFiles(config: Config, options: StartOptions = {}): Promise<PolicyFiles> {
  const home = homeFolder(config);
  const model = await ensureModel(config.model.policy, home, options);
  const graphs = await preparePrecision(home, model, config.engine.precision, options);
  return { modelId: model.record.id, graphs, tokenizerSource: await model.readTokenizer() };
}

/** A running engine over the files with the configured adapters loaded. */
export async function startPolicyModel(
  config: Config,
  { modelId, graphs, tokenizerSource }: PolicyFiles,
  options: EngineStart = {},
): Promise<PolicyModel> {
  const engine = await createEngine({
    modelId,
    graphs,
    tokenizer: tokenizerSource,
    settings: config.engine,
    lockStep: options.lockStep ?? false,
    ...(options.onState ? { onState: options.onState } : {}),
    ...(options.onAdapterFault ? { onAdapterFault: options.onAdapterFault } : {}),
  });
  const encoding = createBackgroundEncoding(tokenizerSource, options.onEncodingFailure);
  const close = async (): Promise<void> => {
    await Promise.all([engine.close(), encoding.close()]);
  };
  try {
    await loadAdapters(config, engine);
  } catch (error) {
    await close();
    throw error;
  }
  return { engine, encoding, tokenizerSource, close };
}

/** Prepares the files and starts the engine over them. */
export async function openPolicyModel(config: Config, options: StartOptions = {}): Promise<PolicyModel> {
  return startPolicyModel(config, await preparePolicyFiles(config, options));
}

/** The configured adapters, and the one that comes with the policy unless a configured one takes its name. */
async function loadAdapters(config: Config, engine: Engine): Promise<void> {
  const { adapters, liveAdapter, policy } = config.model;
  const shipped = shippedAdapter(policy);
  const all = shipped === null ? adapters : { [shipped.name]: shipped.folder, ...adapters };
  for (const [name, folder] of Object.entries(all)) await engine.loadAdapter(name, folder);
  const isShipped = liveAdapter === 'default' && !Object.hasOwn(adapters, liveAdapter);
  const live = isShipped ? (shipped?.name ?? null) : liveAdapter;
  if (live !== null) await engine.setLiveAdapter(live);
}

/** The configured retriever; the demo index is built where it is asked for and missing. */
export async function openIndex(config: Config, options: StartOptions = {}): Promise<Retriever> {
  if (config.retrieval.kind !== 'remote' && config.retrieval.index === 'demo')
    await ensureDemoIndex(config, options);
  return createRetriever(config, options);
}

/** Width of the searches of the graph, which decides what they find; null where no graph is searched. */
export function searchWidth({ retrieval }: Config, retriever: Retriever | null): number | null {
  const kind = retriever?.info.kind;
  return kind === 'hnsw' || kind === 'hybrid' ? retrieval.ef : null;
}

/** What rollouts are made of beside the engine. */
export const rolloutParts = (
  config: Config,
  { encoding }: Pick<PolicyModel, 'encoding'>,
  retriever: Retriever | null,
): Omit<RolloutRunnerOptions, 'generator'> => ({
  retriever,
  tokenizer: encoding.tokenizer,
  encoding,
  config: config.rollout,
  prompts: loadPrompts(config.rollout),
});

/** @param keeping  who keeps the records; absent: nobody */
export const openRunner = (
  config: Config,
  policy: Pick<PolicyModel, 'encoding'> & { readonly engine: Generator },
  retriever: Retriever | null,
  keeping: Pick<RolloutRunnerOptions, 'onRecord' | 'recordTimeoutMs' | 'onRecordFailure'> = {},
): RolloutRunner =>
  createRolloutRunner({ ...keeping, ...rolloutParts(config, policy, retriever), generator: policy.engine });
