// Users first: one engine, seen by users as it is and by the loop as something that may be taken away at any step.

import type { GenerationSequence, Generator, OpenOptions } from '../../engine/index.js';
import { CancelledError } from '../../errors.js';

export interface PrioritySettings {
  /** Time without a user's sequence after which the loop may go on. */
  readonly idleMs: number;
  /** Longest wait for that; then the loop goes on beside the users, with few sequences. null waits for ever. */
  readonly patienceMs: number | null;
}

/** Why a rollout of the loop ended: it can be begun again with the same seed. */
export class YieldedError extends CancelledError {
  constructor() {
    super('left the engine to a user');
  }
}

export interface Priority {
  /** For answers: each sequence sends the loop's away before it waits for a slot. */
  readonly users: Generator;
  /**
   * For the loop: `open` waits for idleness; a sequence is closed at its next step when a user comes, and what it
   * was part of throws {@link YieldedError} by its signal.
   */
  training(signal: AbortSignal): { readonly generator: Generator; readonly yielded: () => boolean };
  /** Sequences of users, running or in line. */
  readonly busy: boolean;
  /** Sequences that the loop may use side by side now. */
  readonly concurrency: number;
  /** How often the loop was sent away. */
  readonly yields: number;
  /** Resolves when the loop may work. @throws {CancelledError} */
  idle(signal?: AbortSignal): Promise<void>;
  /** Hears whether the loop may work, at every change. @returns ends it */
  watch(listener: (mayWork: boolean) => void): () => void;
}

/** Share of the slots beside users, once patience ran out. */
const SHARE_BESIDE = 4;

export function createPriority(engine: Generator, settings: PrioritySettings): Priority {
  return new EnginePriority(engine, settings);
}

class EnginePriority implements Priority {
  readonly users: Generator;
  yields = 0;
  #userSequences = 0;
  /** Users were there without a break of `idleMs` since; null: the loop may work. */
  #busySince: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #patience: NodeJS.Timeout | undefined;
  #beside = false;
  readonly #running = new Set<AbortController>();
  readonly #listeners = new Set<(mayWork: boolean) => void>();

  constructor(
    private readonly engine: Generator,
    private readonly settings: PrioritySettings,
  ) {
    this.users = withOpen(engine, (options) => this.#openForUser(options));
  }

  get busy(): boolean {
    return this.#userSequences > 0;
  }

  get concurrency(): number {
    const { maxSequences } = this.engine.info;
    return this.#beside ? Math.max(1, Math.floor(maxSequences / SHARE_BESIDE)) : maxSequences;
  }

  watch(listener: (mayWork: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async idle(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) throw new CancelledError();
    if (this.#mayWork) return;
    await new Promise<void>((resolve, reject) => {
      const end = this.watch((mayWork) => {
        if (!mayWork) return;
        stop();
        resolve();
      });
      const cancel = (): void => {
        stop();
        reject(new CancelledError());
      };
      const stop = (): void => {
        end();
        signal?.removeEventListener('abort', cancel);
      };
      signal?.addEventListener('abort', cancel, { once: true });
    });
  }

  training(signal: AbortSignal): { generator: Generator; yielded: () => boolean } {
    let yielded = false;
    const generator = withOpen(this.engine, async (options) => {
      await this.idle(signal);
      const own = new AbortController();
      own.signal.addEventListener('abort', () => {
        yielded = true;
      });
      this.#running.add(own);
      const stop = AbortSignal.any([own.signal, signal]);
      try {
        const sequence = await this.engine.open({ ...options, signal: stop });
        return onClose(sequence, stop, () => this.#running.delete(own));
      } catch (error) {
        this.#running.delete(own);
        throw own.signal.aborted ? new YieldedError() : error;
      }
    });
    return { generator, yielded: () => yielded };
  }

  get #mayWork(): boolean {
    return this.#busySince === null || this.#beside;
  }

  async #openForUser(options: OpenOptions): Promise<GenerationSequence> {
    this.#enter();
    try {
      const sequence = await this.engine.open(options);
      return onClose(sequence, options.signal, () => this.#leave());
    } catch (error) {
      this.#leave();
      throw error;
    }
  }

  #enter(): void {
    this.#userSequences++;
    clearTimeout(this.#timer);
    if (this.#busySince !== null) return;
    this.#busySince = performance.now();
    this.#startPatience();
    this.#tell();
    this.#sendAway();
  }

  #leave(): void {
    this.#userSequences--;
    if (this.#userSequences > 0) return;
    this.#timer = setTimeout(() => {
      this.#busySince = null;
      this.#beside = false;
      clearTimeout(this.#patience);
      this.#tell();
    }, this.settings.idleMs);
    this.#timer.unref();
  }

  #sendAway(): void {
    for (const own of this.#running) {
      this.yields++;
      own.abort(new YieldedError());
    }
    this.#running.clear();
  }

  /** Users without a pause would starve the loop. */
  #startPatience(): void {
    const { patienceMs } = this.settings;
    if (patienceMs === null) return;
    this.#patience = setTimeout(() => {
      this.#beside = true;
      this.#tell();
    }, patienceMs);
    this.#patience.unref();
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener(this.#mayWork);
  }
}

/** The generator with another way to open sequences. */
function withOpen(engine: Generator, open: (options: OpenOptions) => Promise<GenerationSequence>): Generator {
  return {
    get info() {
      return engine.info;
    },
    open: (options = {}) => open(options),
    loadAdapter: (name, folder, options) => engine.loadAdapter(name, folder, options),
    unloadAdapter: (name) => engine.unloadAdapter(name),
    listAdapters: () => engine.listAdapters(),
    setLiveAdapter: (name) => engine.setLiveAdapter(name),
    get liveAdapter() {
      return engine.liveAdapter;
    },
    stats: () => engine.stats(),
    close: () => engine.close(),
  };
}

/** Tells once when a sequence ends, by its reader or by its signal. */
function onClose(
  sequence: GenerationSequence,
  signal: AbortSignal | undefined,
  ended: () => void,
): GenerationSequence {
  let open = true;
  const end = (): void => {
    if (!open) return;
    open = false;
    signal?.removeEventListener('abort', end);
    ended();
  };
  if (signal?.aborted) end();
  else signal?.addEventListener('abort', end, { once: true });
  return {
    get adapterVersion() {
      return sequence.adapterVersion;
    },
    get length() {
      return sequence.length;
    },
    get maxLength() {
      return sequence.maxLength;
    },
    get cachedTokens() {
      return sequence.cachedTokens;
    },
    append: (ids) => sequence.append(ids),
    generate: (options) => sequence.generate(options),
    close() {
      sequence.close();
      end();
    },
  };
}
