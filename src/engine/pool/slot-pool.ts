// Which slot holds what: live sequences, and what ended sequences left behind for others to share. Bookkeeping only;
// whoever acts on its answers moves the memory (kv-memory.ts).

/** Tokens whose keys and values stand in a slot. A live sequence is its own resident. */
export interface Resident {
  /** Adapter version that made the keys and values. Never shared with another version. */
  readonly version: string;
  readonly tokens: Int32Array;
  /** Leading tokens whose keys and values are in the slot. */
  readonly kvLength: number;
  /** Leading positions that were read in whole chunks from position 0: bit for bit what any other prefill gives. */
  readonly alignedLength: number;
}

export interface Share {
  readonly slot: number;
  readonly length: number;
}

/** Contiguous slots of one decode run, `first` to `last`; empty when `last < first`. */
export interface Window {
  first: number;
  last: number;
}

/** A prefix shorter than this is prefilled rather than copied. */
export const LEAST_SHARE = 16;

interface Slot {
  live: boolean;
  resident: Resident | null;
  lastUse: number;
}

export function commonPrefix(a: Int32Array, b: Int32Array, limit: number): number {
  let length = 0;
  while (length < limit && a[length] === b[length]) length++;
  return length;
}

export class SlotPool {
  readonly #slots: Slot[];
  #clock = 0;

  /** @param cacheTokens most tokens that ended sequences may leave in free slots */
  constructor(
    count: number,
    private readonly cacheTokens: number,
  ) {
    this.#slots = Array.from({ length: count }, () => ({ live: false, resident: null, lastUse: 0 }));
  }

  get size(): number {
    return this.#slots.length;
  }

  get freeCount(): number {
    return this.#slots.filter((slot) => !slot.live).length;
  }

  isLive(slot: number): boolean {
    return this.#at(slot).live;
  }

  /** Positions of the slot that must not be overwritten; 0 where nothing is kept. */
  keptLength(slot: number): number {
    return this.#at(slot).resident?.kvLength ?? 0;
  }

  /**
   * The longest prefix of `tokens` that stands in some slot under the same adapter version, at least
   * {@link LEAST_SHARE} tokens.
   *
   * @param limit most tokens to share
   * @param chunk share whole chunks of this many tokens only, and only those read as such; 0: any length
   */
  findShare(version: string, tokens: Int32Array, limit: number, chunk: number): Share | null {
    let best: Share | null = null;
    this.#slots.forEach(({ resident }, slot) => {
      if (resident === null || resident.version !== version || resident.tokens === tokens) return;
      const stored = chunk > 0 ? resident.alignedLength : resident.kvLength;
      let length = commonPrefix(resident.tokens, tokens, Math.min(stored, limit));
      if (chunk > 0) length -= length % chunk;
      if (length >= LEAST_SHARE && length > (best?.length ?? 0)) best = { slot, length };
    });
    return best;
  }

  /**
   * Chooses the free slot for a new sequence: the one that shares its prefix where that is most of what the slot keeps
   * or no other is free; else one that leaves few holes in the decode window and holds nothing or something old.
   *
   * @throws when no slot is free: admission must prevent it
   */
  choose(window: Window, share: Share | null): number {
    const free = this.#slots.flatMap((slot, index) => (slot.live ? [] : [index]));
    if (free.length === 0) throw new Error('no free slot: more sequences were admitted than there are slots');
    if (share !== null && !this.isLive(share.slot)) {
      const mostOfIt = share.length * 2 >= this.keptLength(share.slot);
      if (mostOfIt || free.length === 1) return share.slot;
    }
    const cached = free
      .filter((index) => this.#at(index).resident !== null)
      .sort((a, b) => this.#at(a).lastUse - this.#at(b).lastUse);
    // The freshest kept prefix is worth two holes, the oldest next to nothing.
    const worth = (index: number) => (2 * (cached.indexOf(index) + 1)) / Math.max(1, cached.length);
    const holes = (index: number) =>
      window.last < window.first ? 0 : Math.max(0, window.first - 1 - index, index - window.last - 1);
    let best = -1;
    let lowest = Number.POSITIVE_INFINITY;
    for (const index of free) {
      if (index === share?.slot) continue;
      const score = holes(index) + worth(index);
      if (score < lowest) [best, lowest] = [index, score];
    }
    return best;
  }

  /** The lowest free slot, or the wanted one when it is free; -1 when there is none. */
  fixed(wanted: number | null): number {
    if (wanted !== null) return this.isLive(wanted) ? -1 : wanted;
    return this.#slots.findIndex((slot) => !slot.live);
  }

  occupy(slot: number, resident: Resident): void {
    const place = this.#at(slot);
    place.live = true;
    place.resident = resident;
    place.lastUse = ++this.#clock;
  }

  /** Ends a sequence's hold. What it leaves (null: nothing) may be shared until the slot is taken. */
  release(slot: number, left: Resident | null): void {
    const place = this.#at(slot);
    place.live = false;
    place.resident = left !== null && left.kvLength >= LEAST_SHARE ? left : null;
    place.lastUse = ++this.#clock;
    this.#trim();
  }

  touch(slot: number): void {
    this.#at(slot).lastUse = ++this.#clock;
  }

  /** Forgets what ended sequences of a version left. */
  forget(version: string): void {
    for (const slot of this.#slots)
      if (!slot.live && slot.resident?.version === version) slot.resident = null;
  }

  swap(one: number, other: number): void {
    const kept = this.#at(one);
    this.#slots[one] = this.#at(other);
    this.#slots[other] = kept;
  }

  #trim(): void {
    const cached = this.#slots
      .filter((slot) => !slot.live && slot.resident !== null)
      .sort((a, b) => b.lastUse - a.lastUse);
    let kept = 0;
    for (const slot of cached) {
      const length = slot.resident?.kvLength ?? 0;
      if (kept + length <= this.cacheTokens) kept += length;
      else slot.resident = null;
    }
  }

  #at(slot: number): Slot {
    const found = this.#slots[slot];
    if (found === undefined) throw new RangeError(`slot ${slot} of ${this.#slots.length}`);
    return found;
  }
}
