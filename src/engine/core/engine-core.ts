// The engine's loop: takes commands, then reads a chunk of prompts and decodes one token for every running sequence,
// again and again. One instance owns the model, the slots and all sequences; it lives in the worker thread.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Tokenizer } from '../../tokenizer/index.js';
import { BASE_VERSION, type Command, type EngineProfile, type ReadAdapter } from '../messages.js';
import { type CoreParts, CoreState } from './core-state.js';
import { DecodeStep } from './decode-step.js';
import { Prefill } from './prefill.js';
import { startTurn } from './running-turn.js';
import { Sequence } from './sequence.js';

export interface CoreOptions extends CoreParts {
  readonly tokenizer: Tokenizer;
  readonly eosTokenIds: readonly number[];
}

/** What takes effect before the next step, in the order in which it came: a run may be under way when it comes. */
type Order =
  | Command
  | { readonly kind: 'addAdapter'; readonly adapter: ReadAdapter }
  | { readonly kind: 'dropAdapter'; readonly version: string };

export class EngineCore {
  readonly #state: CoreState;
  readonly #prefill: Prefill;
  readonly #decode: DecodeStep;
  readonly #tokenizer: Tokenizer;
  readonly #eosTokenIds: readonly number[];
  #inbox: Order[] = [];
  #wake: () => void = () => {};
  #stopped = false;

  constructor(options: CoreOptions) {
    this.#state = new CoreState(options);
    this.#prefill = new Prefill(this.#state);
    this.#decode = new DecodeStep(this.#state);
    this.#tokenizer = options.tokenizer;
    this.#eosTokenIds = options.eosTokenIds;
  }

  get profile(): EngineProfile {
    return { ...this.#state.profile };
  }

  /** Commands take effect before the next step. */
  accept(commands: readonly Command[]): void {
    this.#take(commands);
  }

  /** Takes effect before the next step, as commands do. */
  addAdapter(adapter: ReadAdapter): void {
    this.#take([{ kind: 'addAdapter', adapter }]);
  }

  /**
   * Forgets an adapter version that no sequence uses any more once earlier commands took effect, with all that was made
   * from it.
   */
  dropAdapter(version: string): void {
    this.#take([{ kind: 'dropAdapter', version }]);
  }

  /** Runs until {@link stop}. Gives way to the thread's messages between steps. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      const worked = await this.tick();
      if (worked) await nextTurn();
      else if (this.#inbox.length === 0 && !this.#stopped)
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#wake();
  }

  /** One round: commands, prompts, one decode step. @returns false when there was nothing to run */
  async tick(): Promise<boolean> {
    const orders = this.#inbox;
    if (orders.length > 0) {
      this.#inbox = [];
      for (const order of orders) this.#obey(order);
    }
    const { outbox } = this.#state;
    const prefilled = await this.#prefill.run(this.#decode.window);
    if (prefilled) outbox.flush();
    const decoded = await this.#decode.run();
    outbox.flush();
    return prefilled || decoded;
  }

  #take(orders: readonly Order[]): void {
    for (const order of orders) this.#inbox.push(order);
    this.#wake();
  }

  #obey(order: Order): void {
    if (order.kind === 'addAdapter') this.#state.adapters.add(order.adapter);
    else if (order.kind === 'dropAdapter') this.#drop(order.version);
    else this.#command(order);
  }

  #drop(version: string): void {
    const { adapters, pool, model } = this.#state;
    adapters.drop(version);
    pool.forget(version);
    this.#decode.reset();
    model.releaseAdapters(adapters.layouts);
  }

  #command(command: Command): void {
    const state = this.#state;
    if (command.kind === 'open') {
      const { sequence: id, version, seed, maxLength, slot } = command;
      const sequence = new Sequence(id, version, seed, maxLength, slot);
      state.sequences.set(id, sequence);
      // Slots go by the order of opening there, not by which prompt arrives first.
      const fixed = state.settings.lockStep ? state.pool.fixed(slot) : -1;
      if (fixed >= 0) state.place(sequence, fixed);
      return;
    }
    // Commands to a sequence that has failed meanwhile are late, not wrong.
    const sequence = state.sequences.get(command.sequence);
    if (sequence === undefined) return;
    switch (command.kind) {
      case 'append':
        sequence.append(command.ids);
        break;
      case 'generate':
        this.#generate(sequence, command);
        break;
      case 'cancel':
        if (sequence.turn?.id === command.turn) sequence.turn = null;
        sequence.truncate(command.length);
        break;
      case 'read':
        if (sequence.turn?.id === command.turn) sequence.turn.unread -= command.steps;
        break;
      case 'close':
        state.remove(sequence, true);
    }
  }

  #generate(sequence: Sequence, { turn, options }: Extract<Command, { kind: 'generate' }>): void {
    const state = this.#state;
    if (sequence.length >= sequence.maxLength) {
      state.outbox.end({ sequence: sequence.id, turn, reason: 'context', stopString: null, text: '' });
      return;
    }
    if (sequence.version !== BASE_VERSION && !state.adapters.has(sequence.version)) {
      state.fail(sequence, 'runtime', `adapter version ${sequence.version} is not loaded in the worker`);
      return;
    }
    sequence.turn = startTurn(turn, options, () => sequence.counts(), this.#tokenizer, this.#eosTokenIds);
    this.#prefill.add(sequence);
  }
}
