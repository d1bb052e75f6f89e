// Users first: one engine, seen by users as it is and by the loop as something that may be taken away at any step.

import { type GenerationSequence, type Generator, type OpenOptions, withOpen } from '../../engine/index.js';
import { CancelledError } from '../../errors.js';

export interface PrioritySettings {
  /** Time without a user's sequence after which the loop may go on. */
  readonly idleMs: number;
  /**
   * Longest time that users may leave no such pause, or only ones in which nothing gets done; then the loop goes on
   * beside them, with few sequences, until they rest for as long. null waits for ever.
   */
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
   * For the loop: `open` waits for idleness and for a place; a sequence is closed at its next step when a user comes,
   * and what it was part of throws {@link YieldedError} by its signal.
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
  /** A user's sequence runs, or ended less than `idleMs` ago. */
  #isBusy = false;
  #beside = false;
  #idleTimer: NodeJS.Timeout | undefined;
  #restTimer: NodeJS.Timeout | undefined;
  #patienceTimer: NodeJS.Timeout | undefined;
  /** The loop's sequences, oldest first. */
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
    const isShared = this.#beside && this.#isBusy;
    return isShared ? Math.max(1, Math.floor(maxSequences / SHARE_BESIDE)) : maxSequences;
  }

  watch(listener: (mayWork: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  idle(signal?: AbortSignal): Promise<void> {
    return this.#until(() => this.#mayWork, signal);
  }

  training(signal: AbortSignal): { generator: Generator; yielded: () => boolean } {
    let yielded = false;
    const generator = withOpen(this.engine, async (options) => {
      const isFree = (): boolean => this.#mayWork && this.#running.size < this.concurrency;
      // All who wait hear of a place at once: each looks again in the turn in which it takes it.
      do await this.#until(isFree, signal);
      while (!isFree());
      const own = new AbortController();
      own.signal.addEventListener('abort', () => {
        yielded = true;
      });
      this.#running.add(own);
      const ended = (): void => {
        if (this.#running.delete(own)) this.#tell();
      };
      const stop = AbortSignal.any([own.signal, signal]);
      try {
        const sequence = await this.engine.open({ ...options, signal: stop });
        return onClose(sequence, stop, ended);
      } catch (error) {
        ended();
        throw own.signal.aborted ? new YieldedError() : error;
      }
    });
    return { generator, yielded: () => yielded };
  }

  get #mayWork(): boolean {
    return !this.#isBusy || this.#beside;
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
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#restTimer);
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#startPatience();
    this.#tell();
    this.#sendAway(this.#beside ? this.concurrency : 0);
  }

  #leave(): void {
    this.#userSequences--;
    if (this.#userSequences > 0) return;
    const { idleMs, patienceMs } = this.settings;
    this.#idleTimer = setTimeout(() => {
      this.#isBusy = false;
      this.#tell();
    }, idleMs).unref();
    if (patienceMs === null) return;
    // Users who are back after each short pause would send the loop away before it has done anything.
    this.#restTimer = setTimeout(
      () => {
        this.#beside = false;
        clearTimeout(this.#patienceTimer);
        this.#patienceTimer = undefined;
      },
      Math.max(idleMs, patienceMs),
    ).unref();
  }

  /** @param kept  the oldest so many may stay */
  #sendAway(kept: number): void {
    for (const own of [...this.#running].slice(kept)) {
      this.#running.delete(own);
      this.yields++;
      own.abort(new YieldedError());
    }
  }

  #startPatience(): void {
    const { patienceMs } = this.settings;
    if (patienceMs === null || this.#patienceTimer !== undefined) return;
    this.#patienceTimer = setTimeout(() => {
      this.#beside = true;
      this.#tell();
    }, patienceMs).unref();
  }

  /** @throws {CancelledError} */
  async #until(holds: () => boolean, signal: AbortSignal | undefined): Promise<void> {
    while (!holds()) {
      if (signal?.aborted) throw new CancelledError();
      await this.#change(signal);
    }
    if (signal?.aborted) throw new CancelledError();
  }

  #change(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const stop = (): void => {
        end();
        signal?.removeEventListener('abort', stop);
        resolve();
      };
      const end = this.watch(stop);
      signal?.addEventListener('abort', stop, { once: true });
    });
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener(this.#mayWork);
  }
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
