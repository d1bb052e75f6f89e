// What commands, prefill and decode of one engine share: sequences, slots, the sampler and what goes out.

import type { EngineEvents, EngineProfile, EngineSettings } from '../messages.js';
import { SlotPool } from '../pool/slot-pool.js';
import { Sampler } from '../sampler/sampler.js';
import { uniformAt } from '../sampler/threefry.js';
import type { AdapterStore } from './adapter-store.js';
import { Outbox } from './outbox.js';
import { type Advance, advance } from './running-turn.js';
import type { Sequence } from './sequence.js';
import type { StepModel } from './step-model.js';

export interface CoreParts {
  readonly model: StepModel;
  readonly adapters: AdapterStore;
  readonly settings: EngineSettings;
  readonly send: (events: EngineEvents) => void;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export class CoreState {
  readonly pool: SlotPool;
  readonly outbox: Outbox;
  readonly sequences = new Map<number, Sequence>();
  readonly bySlot: (Sequence | null)[];
  readonly profile: Mutable<EngineProfile> = {
    decodeSteps: 0,
    decodeRows: 0,
    idleRows: 0,
    decodeRunMs: 0,
    decodeOtherMs: 0,
    prefillRuns: 0,
    prefillTokens: 0,
    prefillRunMs: 0,
    sharedTokens: 0,
    moves: 0,
  };
  readonly model: StepModel;
  readonly adapters: AdapterStore;
  readonly settings: EngineSettings;
  readonly #sampler: Sampler;
  readonly #advance: Advance = { text: '', reason: null, stopString: null, endText: '' };

  constructor(options: CoreParts) {
    this.model = options.model;
    this.adapters = options.adapters;
    this.settings = options.settings;
    this.pool = new SlotPool(options.settings.maxSequences, options.settings.prefixCacheTokens);
    this.outbox = new Outbox(options.send);
    this.bySlot = new Array(options.settings.maxSequences).fill(null);
    this.#sampler = new Sampler(options.model.vocabSize);
  }

  place(sequence: Sequence, slot: number): void {
    sequence.slot = slot;
    this.bySlot[slot] = sequence;
    this.pool.occupy(slot, sequence);
  }

  /** Frees what the sequence holds. `keep`: its keys and values may be shared by later ones. */
  remove(sequence: Sequence, keep: boolean): void {
    this.sequences.delete(sequence.id);
    sequence.turn = null;
    if (sequence.slot < 0) return;
    this.bySlot[sequence.slot] = null;
    this.pool.release(sequence.slot, keep ? sequence : null);
  }

  fail(sequence: Sequence, kind: 'non_finite' | 'runtime', message: string): void {
    this.remove(sequence, false);
    this.outbox.failure({ sequence: sequence.id, error: { kind, message } });
  }

  /** Draws the next token of a sequence from row `row` of the model's logits and says what came of it. */
  sample(sequence: Sequence, row: number): void {
    const { turn } = sequence;
    if (turn === null) return;
    const { model } = this;
    const { draw } = this.#sampler;
    const uniform =
      turn.prepared.parameters.temperature === 0 ? 0 : uniformAt(sequence.seed, sequence.length);
    const finite = this.#sampler.sample(
      model.logits,
      row * model.vocabSize,
      model.logSumExp[row] as number,
      turn.prepared,
      turn.counts,
      uniform,
    );
    if (!finite) {
      const where = `at position ${sequence.length} under adapter version ${sequence.version}`;
      this.fail(sequence, 'non_finite', `expected finite logits, got NaN or infinity ${where}`);
      return;
    }
    sequence.pushSampled(draw.id);
    const result = this.#advance;
    advance(turn, draw.id, sequence.length >= sequence.maxLength, result);
    turn.unread++;
    const where = { sequence: sequence.id, turn: turn.id };
    this.outbox.step({
      ...where,
      id: draw.id,
      logprob: draw.logprob,
      samplingLogprob: draw.samplingLogprob,
      text: result.text,
      alternatives: draw.alternatives,
    });
    if (result.reason === null) return;
    sequence.turn = null;
    this.outbox.end({ ...where, reason: result.reason, stopString: result.stopString, text: result.endText });
  }
}
