// Reads prompts and observations in chunks; between two decode steps no more than the configured number of tokens, and a
// quarter of it while other sequences wait for their next token. What has least left goes first, so that observations of
// running searches and prompts nearly read do not wait for long ones; every fourth round goes by the order of arrival, so
// that a long one is never starved.

import { BASE_VERSION } from '../messages.js';
import { commonPrefix, LEAST_SHARE, type Share, type Window } from '../pool/slot-pool.js';
import type { CoreState } from './core-state.js';
import type { Sequence } from './sequence.js';

/** One round in this many goes by the order of arrival. */
const ARRIVAL_ROUND = 4;

/**
 * Part of a chunk that is read at once while others decode: a whole one takes as long as several of their steps, and
 * smaller ones cost more in all. By tokens and not by time, so that the same company gives the same bits.
 */
const PART_WHILE_DECODING = 4;
const LEAST_CHUNK = 16;

export class Prefill {
  /** In order of arrival. */
  #waiting: Sequence[] = [];
  #round = 0;

  constructor(private readonly state: CoreState) {}

  /** A sequence whose turn has begun. One that has a slot and one unread token needs no prefill. */
  add(sequence: Sequence): void {
    if (this.#needsPrefill(sequence) && !this.#waiting.includes(sequence)) this.#waiting.push(sequence);
  }

  /** Reads up to one chunk's worth of tokens. @returns whether anything ran */
  async run(window: Window): Promise<boolean> {
    this.#waiting = this.#waiting.filter((sequence) => this.#needsPrefill(sequence));
    if (this.#waiting.length === 0) return false;
    const chunk = this.#chunk();
    let budget = chunk;
    for (const sequence of this.#inOrder()) {
      const begun = sequence.kvLength > 0;
      if (!begun && (this.#followsAnother(sequence) || !this.#begin(sequence, window))) continue;
      // All but one token was shared: the decode step reads that one, as it does where the prompt was read whole.
      if (!this.#needsPrefill(sequence)) continue;
      const count = Math.min(sequence.pending, chunk);
      // Small chunks cost more: one that does not fit the round is put off rather than cut.
      if (count > budget) continue;
      budget -= count;
      await this.#read(sequence, count);
    }
    return budget < chunk;
  }

  #chunk(): number {
    const { settings, bySlot } = this.state;
    const whole = settings.prefillChunkTokens;
    if (settings.lockStep || !bySlot.some((sequence) => sequence?.isReady)) return whole;
    return Math.min(whole, Math.max(LEAST_CHUNK, Math.floor(whole / PART_WHILE_DECODING)));
  }

  #inOrder(): readonly Sequence[] {
    this.#round = (this.#round + 1) % ARRIVAL_ROUND;
    if (this.#round === 0) return this.#waiting;
    return [...this.#waiting].sort((a, b) => a.pending - b.pending);
  }

  #needsPrefill(sequence: Sequence): boolean {
    return sequence.turn !== null && (sequence.slot < 0 || sequence.pending > 1);
  }

  async #read(sequence: Sequence, count: number): Promise<void> {
    const { model, settings, profile, adapters } = this.state;
    const { version, kvLength } = sequence;
    const started = performance.now();
    try {
      const layout = version === BASE_VERSION ? null : adapters.combination([version]).layout;
      await model.prefill(sequence, kvLength, count, layout);
    } catch (error) {
      this.state.fail(sequence, 'runtime', (error as Error).message);
      return;
    }
    profile.prefillRunMs += performance.now() - started;
    profile.prefillRuns++;
    profile.prefillTokens += count;
    const { prefillChunkTokens } = settings;
    const aligned = kvLength === sequence.alignedLength && kvLength % prefillChunkTokens === 0;
    if (aligned && count === prefillChunkTokens) sequence.alignedLength += count;
    sequence.kvLength += count;
    if (sequence.pending === 0) this.state.sample(sequence, 0);
  }

  /** Takes a slot where it has none, and the longest prefix that stands somewhere. @returns false when it must wait */
  #begin(sequence: Sequence, window: Window): boolean {
    const { pool, settings, model, profile } = this.state;
    const share = this.#share(sequence);
    const slot = sequence.slot >= 0 ? sequence.slot : this.#chooseSlot(sequence, window, share);
    if (slot < 0) return false;
    if (share !== null) {
      if (share.slot !== slot) model.memory.copy(share.slot, slot, share.length);
      pool.touch(share.slot);
      sequence.kvLength = share.length;
      if (settings.lockStep) sequence.alignedLength = share.length;
      profile.sharedTokens += share.length;
      this.state.outbox.begin({ sequence: sequence.id, cachedTokens: share.length });
    }
    if (sequence.slot < 0) this.state.place(sequence, slot);
    return true;
  }

  #chooseSlot(sequence: Sequence, window: Window, share: Share | null): number {
    const { pool, settings } = this.state;
    return settings.lockStep ? pool.fixed(sequence.wantedSlot) : pool.choose(window, share);
  }

  #share(sequence: Sequence): Share | null {
    const { pool, settings } = this.state;
    if (settings.prefixCacheTokens === 0) return null;
    return pool.findShare(sequence.version, sequence.tokens, sequence.length - 1, this.#shareChunk);
  }

  /** In lock-step mode only whole chunks are shared, whose bits do not depend on who read them. */
  get #shareChunk(): number {
    return this.state.settings.lockStep ? this.state.settings.prefillChunkTokens : 0;
  }

  /** Whether another sequence is about to read a prefix that this one can share (samples of one prompt). */
  #followsAnother(sequence: Sequence): boolean {
    if (this.state.settings.prefixCacheTokens === 0) return false;
    const chunk = this.#shareChunk;
    for (const other of this.#waiting) {
      if (other === sequence || other.kvLength === 0 || other.turn === null || other.pending <= 1) continue;
      if (other.version !== sequence.version) continue;
      let common = commonPrefix(other.tokens, sequence.tokens, Math.min(other.length, sequence.length - 1));
      if (chunk > 0) common -= common % chunk;
      if (common >= LEAST_SHARE && common > other.kvLength) return true;
    }
    return false;
  }
}
