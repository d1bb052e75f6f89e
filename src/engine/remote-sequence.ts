// A sequence as its user holds it: commands go to the worker, steps come back and wait to be read.

import { CancelledError, ContextLengthError, InvalidInputError } from '../errors.js';
import type { GenerationSequence, SampledToken, Turn, TurnEnd, TurnOptions, TurnStep } from './generator.js';
import type { BeginEvent, Command, EndEvent, StepEvent } from './messages.js';
import { checkTurnOptions } from './sampler/parameters.js';

/** Steps read between two reports to the worker. */
const REPORT_EVERY = 16;

/** One turn's steps on their way to the reader. */
interface TurnInbox {
  readonly id: number;
  readonly steps: TurnStep[];
  end: Omit<TurnEnd, 'fullText'> | null;
  error: Error | null;
  wake: () => void;
}

export interface RemoteSequenceOptions {
  readonly id: number;
  readonly adapterVersion: string;
  readonly maxLength: number;
  readonly vocabSize: number;
  readonly post: (command: Command) => void;
  /** Called once, when the sequence no longer holds its slot. */
  readonly onClose: () => void;
}

export class RemoteSequence implements GenerationSequence {
  readonly adapterVersion: string;
  readonly maxLength: number;
  #length = 0;
  #cachedTokens = 0;
  #turns = 0;
  #turn: TurnInbox | null = null;
  #closed = false;
  #error: Error | null = null;

  constructor(private readonly options: RemoteSequenceOptions) {
    this.adapterVersion = options.adapterVersion;
    this.maxLength = options.maxLength;
  }

  get length(): number {
    return this.#length;
  }

  get cachedTokens(): number {
    return this.#cachedTokens;
  }

  append(ids: readonly number[]): void {
    this.#checkIdle('append');
    const { vocabSize, id, post } = this.options;
    const wrong = ids.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabSize);
    if (wrong !== undefined)
      throw new InvalidInputError(`ids: expected token ids below ${vocabSize}, got ${wrong}`, 'ids');
    if (this.#length + ids.length > this.maxLength)
      throw new ContextLengthError(
        `the sequence holds ${this.#length} tokens and ${ids.length} more were given; at most ${this.maxLength} fit`,
        { details: { length: this.#length, appended: ids.length, maxLength: this.maxLength } },
      );
    if (ids.length === 0) return;
    this.#length += ids.length;
    post({ kind: 'append', sequence: id, ids: Int32Array.from(ids) });
  }

  generate(options: TurnOptions): Turn {
    checkTurnOptions(options, this.options.vocabSize);
    return this.#run(options);
  }

  close(): void {
    this.#end(new CancelledError('the sequence is closed'), true);
  }

  /** The worker can no longer go on with this sequence. */
  fail(error: Error): void {
    this.#end(error, false);
  }

  receiveBegin({ cachedTokens }: BeginEvent): void {
    this.#cachedTokens = cachedTokens;
  }

  receive(event: StepEvent): void {
    const turn = this.#turn;
    // Steps of a turn that was left early may still be on their way.
    if (turn?.id !== event.turn) return;
    const { id, logprob, samplingLogprob, alternatives } = event;
    const token: SampledToken =
      alternatives === undefined
        ? { id, logprob, samplingLogprob }
        : { id, logprob, samplingLogprob, alternatives };
    turn.steps.push({ token, text: event.text });
    turn.wake();
  }

  receiveEnd({ turn: id, reason, stopString, text }: EndEvent): void {
    const turn = this.#turn;
    if (turn?.id !== id) return;
    turn.end = { reason, stopString, text };
    turn.wake();
  }

  #end(error: Error, cancelled: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#error = error;
    const turn = this.#turn;
    if (turn !== null) {
      turn.steps.length = 0;
      if (cancelled) turn.end = { reason: 'cancelled', stopString: null, text: '' };
      else turn.error = error;
      turn.wake();
    }
    if (cancelled) this.options.post({ kind: 'close', sequence: this.options.id });
    this.options.onClose();
  }

  #checkIdle(action: string): void {
    if (this.#error !== null) throw this.#error;
    if (this.#turn !== null)
      throw new InvalidInputError(`${action}: a turn of this sequence is still running`);
  }

  async *#run(options: TurnOptions): Turn {
    this.#checkIdle('generate');
    const { id: sequence, post } = this.options;
    if (this.#length === 0) throw new InvalidInputError('generate: append a prompt first', 'ids');
    const turn: TurnInbox = { id: this.#turns++, steps: [], end: null, error: null, wake: () => {} };
    this.#turn = turn;
    post({ kind: 'generate', sequence, turn: turn.id, options });
    let fullText = '';
    let unreported = 0;
    let over = false;
    try {
      for (;;) {
        const step = turn.steps.shift();
        if (step !== undefined) {
          this.#length++;
          fullText += step.text;
          if (++unreported === REPORT_EVERY) {
            post({ kind: 'read', sequence, turn: turn.id, steps: unreported });
            unreported = 0;
          }
          yield step;
          continue;
        }
        if (turn.error !== null) {
          over = true;
          throw turn.error;
        }
        if (turn.end !== null) {
          over = true;
          return { ...turn.end, fullText: fullText + turn.end.text };
        }
        await new Promise<void>((resolve) => {
          turn.wake = resolve;
        });
      }
    } finally {
      this.#turn = null;
      if (!over && !this.#closed) post({ kind: 'cancel', sequence, turn: turn.id, length: this.#length });
    }
  }
}
