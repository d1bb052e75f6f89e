// One decode step: a token for every sequence that is ready, in one run over a window of slots.

import { BASE_VERSION } from '../messages.js';
import { Compaction, windowOf } from '../pool/compaction.js';
import type { Window } from '../pool/slot-pool.js';
import type { CoreState } from './core-state.js';
import type { Sequence } from './sequence.js';
import type { RowAdapters } from './step-binding.js';

export class DecodeStep {
  /** Slots of the last step. */
  readonly window: Window = { first: 0, last: -1 };
  readonly #compaction = new Compaction();
  /** By slot: 1 where a sequence decodes in this step. */
  readonly #decodes: Uint8Array;
  readonly #tokens: Int32Array;
  readonly #pastLengths: Int32Array;
  /** By slot: id of the sequence that the rows and adapters below were made for, plus 1; 0 for none. */
  readonly #madeFor: Int32Array;
  readonly #madeWindow: Window = { first: 0, last: -1 };
  #rows: readonly number[] = [];
  #adapters: RowAdapters | null = null;

  constructor(private readonly state: CoreState) {
    const slots = state.bySlot.length;
    this.#decodes = new Uint8Array(slots);
    this.#tokens = new Int32Array(slots);
    this.#pastLengths = new Int32Array(slots);
    this.#madeFor = new Int32Array(slots);
  }

  /** Forgets which rows and adapters the last step had. */
  reset(): void {
    this.#madeFor.fill(0);
    this.#madeWindow.last = -1;
    this.#adapters = null;
  }

  /** @returns false when no sequence was ready */
  async run(): Promise<boolean> {
    const started = performance.now();
    const { window } = this;
    const count = this.#gather();
    if (count === 0) return false;
    const size = window.last - window.first + 1;
    this.#fill(size);
    if (this.#changed()) this.#compose(size);
    const { model, profile } = this.state;
    const runStarted = performance.now();
    try {
      await model.decode(window.first, size, this.#tokens, this.#pastLengths, this.#rows, this.#adapters);
    } catch (error) {
      this.#failAll((error as Error).message);
      return true;
    }
    const runEnded = performance.now();
    const rows = this.#rows;
    for (let i = 0; i < rows.length; i++) {
      const sequence = this.#decoding(window.first + (rows[i] as number));
      if (sequence === null) continue;
      sequence.kvLength++;
      this.state.sample(sequence, i);
    }
    profile.decodeSteps++;
    profile.decodeRows += count;
    profile.idleRows += size - count;
    profile.decodeRunMs += runEnded - runStarted;
    profile.decodeOtherMs += runStarted - started + performance.now() - runEnded;
    return true;
  }

  /** Finds who decodes and the window around them, closing a hole where that pays. */
  #gather(): number {
    const { bySlot, settings, pool } = this.state;
    const decodes = this.#decodes;
    for (let slot = 0; slot < bySlot.length; slot++) {
      decodes[slot] = (bySlot[slot] as Sequence | null)?.isReady ? 1 : 0;
    }
    const { window } = this;
    const count = windowOf(decodes, window);
    if (count === 0) return 0;
    if (settings.lockStep) {
      window.first = 0;
      window.last = bySlot.length - 1;
      return count;
    }
    const move = this.#compaction.next(decodes, window, count, (slot) => pool.keptLength(slot));
    if (move !== null) {
      this.#move(move.from, move.to);
      windowOf(decodes, window);
    }
    return count;
  }

  /** Swaps a decoding slot with a hole. */
  #move(from: number, to: number): void {
    const { pool, bySlot, model, profile } = this.state;
    const [moved, kept] = [pool.keptLength(from), pool.keptLength(to)];
    if (kept === 0) model.memory.copy(from, to, moved);
    else model.memory.exchange(from, to, Math.max(moved, kept));
    pool.swap(from, to);
    const [one, other] = [bySlot[from] as Sequence, bySlot[to] as Sequence | null];
    bySlot[to] = one;
    one.slot = to;
    bySlot[from] = other;
    if (other !== null) other.slot = from;
    this.#decodes[to] = 1;
    this.#decodes[from] = 0;
    profile.moves++;
  }

  #fill(size: number): void {
    const { pool } = this.state;
    const { first } = this.window;
    for (let row = 0; row < size; row++) {
      const sequence = this.#decoding(first + row);
      // A hole reads and writes one position behind what its slot keeps; nobody looks at the result.
      this.#tokens[row] = sequence === null ? 0 : (sequence.tokens[sequence.kvLength] as number);
      this.#pastLengths[row] = sequence === null ? pool.keptLength(first + row) : sequence.kvLength;
    }
  }

  #decoding(slot: number): Sequence | null {
    return this.#decodes[slot] === 1 ? (this.state.bySlot[slot] as Sequence | null) : null;
  }

  /** Whether rows or adapters differ from the last step's. */
  #changed(): boolean {
    let changed = this.window.first !== this.#madeWindow.first || this.window.last !== this.#madeWindow.last;
    for (let slot = 0; slot < this.#madeFor.length; slot++) {
      const id = (this.#decoding(slot)?.id ?? -1) + 1;
      if (this.#madeFor[slot] === id) continue;
      this.#madeFor[slot] = id;
      changed = true;
    }
    return changed;
  }

  #compose(size: number): void {
    const { settings, adapters, model } = this.state;
    const { first } = this.window;
    this.#madeWindow.first = first;
    this.#madeWindow.last = this.window.last;
    const all = Array.from({ length: size }, (_, row) => row);
    const sequences = all.map((row) => this.#decoding(first + row));
    // In lock-step mode the output layer, too, always sees the same number of rows.
    this.#rows = settings.lockStep ? all : all.filter((row) => sequences[row] !== null);
    const versions = new Set(sequences.flatMap((item) => (item === null ? [] : [item.version])));
    versions.delete(BASE_VERSION);
    this.#adapters = null;
    if (versions.size === 0) return;
    const { layout, places } = adapters.combination([...versions]);
    // A set that the store let go of for this one would live on in bindings.
    if (versions.size > 1) model.releaseAdapters(adapters.layouts);
    this.#adapters = {
      layout,
      rows: sequences.map((item) => places.get(item?.version ?? BASE_VERSION) ?? null),
    };
  }

  #failAll(message: string): void {
    for (let slot = this.window.first; slot <= this.window.last; slot++) {
      const sequence = this.#decoding(slot);
      if (sequence !== null) this.state.fail(sequence, 'runtime', message);
    }
  }
}
