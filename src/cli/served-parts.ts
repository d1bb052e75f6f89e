// What a server serves, while it is opened and after: the model, the index, the runner over both, and the loop beside them.

import type { Config } from '../config/index.js';
import { createPriority, type OpenedLoop, type Priority } from '../loop/index.js';
import type { Retriever } from '../retrieval/index.js';
import type { WorkerState } from '../runtime/index.js';
import type { Part, Policy } from '../server/index.js';
import type { Logger } from '../telemetry/index.js';
import type { TrajectoryStore } from '../trajectory/index.js';
import {
  openIndex,
  openRunner,
  type PolicyFiles,
  type PolicyModel,
  preparePolicyFiles,
  type StartOptions,
  startPolicyModel,
} from './application.js';
import { counted } from './counted.js';
import { openConfiguredLoop } from './loop-house.js';
import { type LoopStart, startLoop } from './loop-start.js';
import { recordKeeping } from './store.js';

const LOADING = { state: 'loading', reason: 'starting' } as const;

/** Each getter tells how its part stands; `load` opens them. */
export class ServedParts {
  #model: PolicyModel | null = null;
  #retriever: Retriever | null = null;
  #policy: Part<Policy> = LOADING;
  /** Outlives the engine's workers: a restart reads no prompt file anew. */
  #ready: Part<Policy> | null = null;
  #index: Part<Retriever> = LOADING;
  #priority: Priority | null = null;
  #loop: LoopStart | null = null;
  readonly #keeping: ReturnType<typeof recordKeeping>;

  constructor(
    private readonly config: Config,
    private readonly store: TrajectoryStore | null,
    private readonly logger: Logger,
  ) {
    this.#keeping = recordKeeping(store, config, logger);
  }

  readonly policy = () => this.#policy;
  readonly index = () => this.#index;
  readonly loop = () => this.#loop?.loop() ?? null;
  readonly loopTrouble = () => {
    if (this.#loop !== null) return this.#loop.trouble();
    return this.config.loop.enabled ? 'it waits for the model and the index' : null;
  };

  /** The model and the index side by side, then the loop; the policy is ready last. */
  async load(options: StartOptions): Promise<void> {
    const files = await preparePolicyFiles(this.config, options);
    // Both take seconds of one core.
    const [model, searched] = await Promise.allSettled([
      this.#openModel(files),
      openIndex(this.config, options),
    ]);
    if (searched.status === 'fulfilled') this.#retriever = searched.value;
    if (model.status === 'rejected') throw model.reason;
    if (searched.status === 'rejected') throw searched.reason;
    this.#index = { state: 'ready', value: searched.value };
    await this.#startLoop(model.value, searched.value, options.signal);
    this.#ready = this.#readyPolicy(model.value, searched.value);
    this.#policy = this.#ready;
  }

  async close(): Promise<void> {
    await this.#loop?.close();
    await Promise.all([this.#model?.close(), this.#retriever?.close()]);
  }

  async #openModel(files: PolicyFiles): Promise<PolicyModel> {
    const { config, logger } = this;
    const model = await startPolicyModel(config, files, {
      onEncodingFailure: (err) => logger.warn({ err }, 'no worker for long texts'),
      onAdapterFault: ({ name, error }) =>
        logger.error({ adapter: name, err: error }, 'the engine came back without an adapter'),
      onState: (state, error) => {
        if (error !== null) logger.error({ state, err: error }, 'engine worker failed');
        this.#engineIs(state);
      },
    });
    this.#model = model;
    if (config.loop.enabled) this.#priority = createPriority(model.engine, config.loop);
    model.encoding.warm();
    const auditor = { modelDigest: model.engine.info.modelDigest, tokenizer: model.tokenizerSource };
    void this.store
      ?.useAuditor(auditor)
      .catch((err) => logger.warn({ err }, 'records are stored without an audit'));
    return model;
  }

  #engineIs(state: WorkerState): void {
    if (this.#model === null) return;
    if (state !== 'ready')
      this.#policy = { state: state === 'failed' ? 'broken' : 'loading', reason: 'the engine restarts' };
    else if (this.#ready !== null) this.#policy = this.#ready;
  }

  #readyPolicy({ engine, encoding }: PolicyModel, searched: Retriever): Part<Policy> {
    // With a loop beside them, users' sequences send its own away.
    const generator = this.#priority?.users ?? engine;
    const runner = openRunner(this.config, { engine: generator, encoding }, searched, this.#keeping);
    return { state: 'ready', value: { runner, engine, tokenizer: encoding.tokenizer } };
  }

  /** First the version that was published last, then the first question; but no answer waits for what may take for ever. */
  async #startLoop(policy: PolicyModel, retriever: Retriever, signal: StartOptions['signal']): Promise<void> {
    const { config, store, logger } = this;
    const priority = this.#priority;
    if (store === null || priority === null) return;
    const house = { policy, priority, retriever, store, startsWith: policy.engine.liveAdapter };
    this.#loop = startLoop({
      open: (hooks) => openConfiguredLoop(config, house, hooks),
      onOpened: (opened) => warnOfFewQuestions(config, opened, logger),
      logger,
      signal,
    });
    await this.#loop.settled;
  }
}

/** Labels of users' questions have not been read yet; they seldom come to so many. */
function warnOfFewQuestions(config: Config, { loop }: OpenedLoop, logger: Logger): void {
  const { questions_to_judge_by: there, questions_needed_to_judge: needed } = loop.status().labels;
  const { gateData, confirmEvery } = config.loop;
  if (there >= (confirmEvery > 0 ? 2 : 1) * needed) return;
  const data =
    gateData === null ? 'loop.gateData is not set' : `loop.gateData holds ${counted(there, 'question')}`;
  const lacks =
    there < needed
      ? `a verdict takes ${needed}: no candidate is published`
      : `publication ${confirmEvery} takes ${needed} fresh ones beside them: it waits`;
  logger.warn(
    { there, needed },
    `${data}, and ${lacks} before held-out questions, labelled by an admin or by two keys, make up for them`,
  );
}
