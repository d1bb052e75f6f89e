// The engine for the rest of the house: a worker thread behind the Generator interface.

import { randomInt } from 'node:crypto';
import type { EngineConfig } from '../config/index.js';
import { InvalidInputError, NonFiniteError, RuntimeError } from '../errors.js';
import type { EngineGraphs } from '../model/index.js';
import { startWorker, type WorkerClient, type WorkerState } from '../runtime/index.js';
import type { TokenizerSource } from '../tokenizer/index.js';
import { canonicalJson, sha256Hex } from '../util/digest.js';
import { type AdapterFault, AdapterRegistry } from './adapter-registry.js';
import { Admission } from './admission.js';
import { EngineAwayError, unlessAway } from './away.js';
import { buffersOf } from './core/read-adapter.js';
import { LEAST_WIDE } from './core/step-model.js';
import type {
  AdapterInfo,
  EngineInfo,
  EngineStats,
  GenerationSequence,
  Generator,
  LoadOptions,
  OpenOptions,
} from './generator.js';
import type {
  Command,
  EngineEvents,
  EngineMethods,
  EngineProfile,
  EngineStart,
  LoadedAdapter,
  ReaderMethods,
} from './messages.js';
import { RemoteSequence } from './remote-sequence.js';

/** Goes up when the same logits and seed may give another token than before. */
const SAMPLER_VERSION = 1;
/** Behind the engine: a fresh thread, its modules and a file of weights must not make a stream stand still. */
const READER_NICENESS = 10;
/** Pauses before adapters that could not be loaded are tried again. */
const RETRY_MS = 500;
const LAST_RETRY_MS = 30_000;

export interface EngineOptions {
  readonly modelId: string;
  readonly graphs: EngineGraphs;
  readonly tokenizer: TokenizerSource;
  readonly settings: EngineConfig;
  /**
   * For rollouts that must be repeatable bit for bit: every step has all slots as rows, a sequence stays in the slot it
   * was opened in, prefixes are shared in whole chunks only. Slower than the default where few sequences run.
   */
  readonly lockStep?: boolean;
  /** Whether onnxruntime's threads spin while they wait (default): faster alone, bad where others need the cores. */
  readonly spinning?: boolean;
  /** Called when the worker dies, comes back or gives up. */
  readonly onState?: (state: WorkerState, error: Error | null) => void;
  /** Called for each adapter that the worker lacks after it came back. */
  readonly onAdapterFault?: (fault: AdapterFault) => void;
  /** Another entry than the engine's own, such as one that counts or breaks something around it. */
  readonly workerEntry?: string;
  /** Pause before the worker is started again for the first time; doubled for each further time. */
  readonly backOffMs?: number;
}

export interface Engine extends Generator {
  readonly state: WorkerState;
  /** Counters of the worker since its start. */
  profile(): Promise<EngineProfile>;
}

/**
 * Starts the engine's worker and waits until it can take sequences. When the worker dies, every open sequence fails with
 * {@link EngineAwayError} and the worker starts again with its adapters, at growing intervals, a few times.
 *
 * What is guaranteed about repeatability stands in docs/engine.md.
 *
 * @throws what the start of the worker threw (a graph that onnxruntime refuses, a broken tokenizer)
 */
export async function createEngine(options: EngineOptions): Promise<Engine> {
  const engine = new WorkerEngine(options);
  await engine.start();
  return engine;
}

class WorkerEngine implements Engine {
  /** All of `info` that is known before the worker runs. */
  readonly #about: Omit<EngineInfo, 'fingerprint'>;
  #fingerprint = '';
  readonly #start: EngineStart;
  readonly #admission: Admission;
  readonly #registry: AdapterRegistry;
  readonly #sequences = new Map<number, RemoteSequence>();
  #client: WorkerClient<EngineMethods> | null = null;
  /** True between the return of a worker and the return of its adapters. */
  #reloading = false;
  /** Which worker it is: what was begun for one before does not count. */
  #life = 0;
  #retry: NodeJS.Timeout | undefined;
  #nextId = 0;
  #commands: Command[] = [];

  constructor(private readonly options: EngineOptions) {
    const { graphs, modelId } = options;
    const settings = {
      ...options.settings,
      maxSequenceTokens: Math.min(options.settings.maxSequenceTokens, graphs.maxPositions),
      precision: graphs.precision,
      lockStep: options.lockStep ?? false,
      spinning: options.spinning ?? true,
    };
    this.#start = { graphs, tokenizer: options.tokenizer, settings };
    this.#admission = new Admission(settings.maxSequences, settings.queueLimit);
    this.#registry = new AdapterRegistry(
      {
        load: (folder) => unlessAway(this.#loadAdapter(folder)),
        drop: (version) => {
          // Closes that were not sent yet must come first.
          this.#flush();
          this.#worker.call('dropAdapter', { version }).catch(() => {});
        },
      },
      settings.maxAdapters,
    );
    this.#about = {
      modelId,
      modelDigest: graphs.digest,
      precision: graphs.precision,
      vocabSize: graphs.config.vocabSize,
      maxSequenceTokens: settings.maxSequenceTokens,
      eosTokenIds: graphs.config.eosTokenIds,
      maxSequences: settings.maxSequences,
    };
  }

  async start(): Promise<void> {
    const { workerEntry = 'engine/worker', backOffMs } = this.options;
    this.#client = await startWorker<EngineMethods, EngineEvents>(workerEntry, this.#start, {
      niceness: this.options.settings.niceness,
      onBroadcast: (events) => this.#receive(events),
      onState: (state, error) => this.#onState(state, error),
      ...(backOffMs === undefined ? {} : { backOffMs }),
    });
    const { modelDigest, precision } = this.#about;
    const { onnxruntimeVersion } = await this.#client.call('describe', undefined);
    const { int8Cache, wideSteps } = this.#start.graphs;
    const graphs = [modelDigest, precision, int8Cache !== null, wideSteps === null ? null : LEAST_WIDE];
    const digest = sha256Hex(canonicalJson([SAMPLER_VERSION, onnxruntimeVersion, ...graphs]));
    this.#fingerprint = `fp_${digest.slice(0, 16)}`;
  }

  get info(): EngineInfo {
    return { ...this.#about, fingerprint: this.#fingerprint };
  }

  get state(): WorkerState {
    const { state } = this.#worker;
    return state === 'ready' && this.#reloading ? 'restarting' : state;
  }

  async open(options: OpenOptions = {}): Promise<GenerationSequence> {
    const { maxSequenceTokens } = this.#about;
    const maxLength = Math.min(options.maxLength ?? maxSequenceTokens, maxSequenceTokens);
    const { slot = null } = options;
    this.#checkOpen(options, maxLength);
    const lease = this.#registry.lease(options.adapter);
    let leave: () => void;
    try {
      this.#checkReady();
      leave = await this.#admission.enter(options.signal);
    } catch (error) {
      lease.release();
      throw error;
    }
    const id = this.#nextId++;
    const abort = () => sequence.close();
    const sequence = new RemoteSequence({
      id,
      adapterVersion: lease.version,
      maxLength,
      vocabSize: this.#about.vocabSize,
      post: (command) => this.#post(command),
      onClose: () => {
        options.signal?.removeEventListener('abort', abort);
        this.#sequences.delete(id);
        lease.release();
        leave();
      },
    });
    this.#sequences.set(id, sequence);
    options.signal?.addEventListener('abort', abort, { once: true });
    const seed = options.seed ?? randomInt(2 ** 47);
    this.#post({ kind: 'open', sequence: id, version: lease.version, seed, maxLength, slot });
    if (options.signal?.aborted) sequence.close();
    return sequence;
  }

  #checkOpen({ seed, slot }: OpenOptions, maxLength: number): void {
    if (seed !== undefined && !Number.isSafeInteger(seed))
      throw new InvalidInputError(`seed: expected an integer within 2^53, got ${seed}`, 'seed');
    if (!Number.isInteger(maxLength) || maxLength < 1)
      throw new InvalidInputError(
        `maxLength: expected an integer of at least 1, got ${maxLength}`,
        'maxLength',
      );
    if (slot === undefined) return;
    const { maxSequences } = this.#about;
    if (!this.options.lockStep)
      throw new InvalidInputError('slot: only an engine in lock-step mode takes one', 'slot');
    if (!Number.isInteger(slot) || slot < 0 || slot >= maxSequences)
      throw new InvalidInputError(`slot: expected one below ${maxSequences}, got ${slot}`, 'slot');
  }

  loadAdapter(name: string, folder: string, options: LoadOptions = {}): Promise<AdapterInfo> {
    return this.#registry.load(name, folder, options);
  }

  /** Read in a thread of its own, so that no sequence waits; the weights move from there to the worker. */
  async #loadAdapter(folder: string): Promise<LoadedAdapter> {
    const { graphs, settings } = this.#start;
    const data = { config: graphs.config, maxRank: settings.maxAdapterRank };
    const reader = await startWorker<ReaderMethods>('engine/adapter-reader', data, {
      restart: false,
      niceness: Math.max(READER_NICENESS, settings.niceness),
    });
    try {
      const adapter = await reader.call('read', { folder });
      await this.#worker.call('addAdapter', adapter, { transfer: buffersOf(adapter) });
      return { version: adapter.version, rank: adapter.rank };
    } finally {
      await reader.close();
    }
  }

  unloadAdapter(name: string): Promise<void> {
    return this.#registry.unload(name);
  }

  listAdapters(): readonly AdapterInfo[] {
    return this.#registry.list();
  }

  async setLiveAdapter(name: string | null): Promise<void> {
    this.#registry.setLive(name);
  }

  get liveAdapter(): AdapterInfo | null {
    return this.#registry.live;
  }

  stats(): EngineStats {
    const { running, queued } = this.#admission;
    const { maxSequences } = this.#about;
    return {
      running,
      queued,
      queueLimit: this.#start.settings.queueLimit,
      freeSlots: maxSequences - running,
    };
  }

  profile(): Promise<EngineProfile> {
    return unlessAway(this.#worker.call('profile', undefined));
  }

  async close(): Promise<void> {
    this.#failAll(new EngineAwayError('the engine was closed'));
    await this.#worker.close();
  }

  get #worker(): WorkerClient<EngineMethods> {
    if (this.#client === null) throw new EngineAwayError('the engine has not started');
    return this.#client;
  }

  #checkReady(): void {
    if (this.state !== 'ready') throw new EngineAwayError(`the engine is ${this.state}`);
  }

  /** Commands of one round of the event loop travel together. */
  #post(command: Command): void {
    if (this.#commands.push(command) === 1) queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    const commands = this.#commands;
    if (commands.length === 0) return;
    this.#commands = [];
    // A worker that died is reported by its state.
    this.#worker.call('commands', commands).catch(() => {});
  }

  #receive({ begins, steps, ends, failures }: EngineEvents): void {
    for (const begin of begins) this.#sequences.get(begin.sequence)?.receiveBegin(begin);
    for (const step of steps) this.#sequences.get(step.sequence)?.receive(step);
    for (const end of ends) this.#sequences.get(end.sequence)?.receiveEnd(end);
    for (const { sequence, error } of failures)
      this.#sequences
        .get(sequence)
        ?.fail(
          error.kind === 'non_finite' ? new NonFiniteError(error.message) : new RuntimeError(error.message),
        );
  }

  #onState(state: WorkerState, error: Error | null): void {
    const life = ++this.#life;
    clearTimeout(this.#retry);
    if (state === 'ready') {
      this.#reloading = true;
      void this.#registry.reload().then((faults) => {
        if (life !== this.#life) return;
        this.#reloading = false;
        this.#tell(() => this.options.onState?.(this.state, null));
        this.#faulty(faults, life, this.options.backOffMs ?? RETRY_MS);
      });
      return;
    }
    if (state !== 'closed')
      this.#failAll(new EngineAwayError(`the engine's worker died: ${error?.message}`, { cause: error }));
    this.#tell(() => this.options.onState?.(state, error));
  }

  /** The worker's return must not hang on what a listener throws, nor the process. */
  #tell(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      process.emitWarning(`a listener of the engine threw: ${error}`);
    }
  }

  /** Says what is missing, and asks again for what may return. */
  #faulty(faults: readonly AdapterFault[], life: number, delayMs: number): void {
    for (const fault of faults) this.#tell(() => this.options.onAdapterFault?.(fault));
    if (!faults.some(({ mayReturn }) => mayReturn)) return;
    this.#retry = setTimeout(() => {
      void this.#registry.retry().then((left) => {
        if (life === this.#life) this.#faulty(left, life, Math.min(2 * delayMs, LAST_RETRY_MS));
      });
    }, delayMs).unref();
  }

  #failAll(error: Error): void {
    this.#commands = [];
    this.#admission.rejectWaiting(error);
    for (const sequence of [...this.#sequences.values()]) sequence.fail(error);
  }
}
