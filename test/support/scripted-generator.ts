// A generator that plays token scripts and keeps the engine's contract: it stops at stop strings in decoded
// text, at end tokens, at its limits and on cancellation, it holds back what may become a stop string, and a token that
// is forced comes.

import type {
  EngineInfo,
  GenerationSequence,
  Generator,
  OpenOptions,
  SampledToken,
  Turn,
  TurnEnd,
  TurnOptions,
  TurnStopReason,
} from '../../src/engine/index.js';
import { CancelledError, ContextLengthError, NotFoundError, UnavailableError } from '../../src/errors.js';
import type { Tokenizer } from '../../src/tokenizer/index.js';

/** Ids to sample in a turn, given its number and the sequence so far. When they run out, the end token comes. */
export type Policy = (turn: number, sequence: readonly number[]) => Iterable<number>;

export interface ScriptedOptions {
  readonly tokenizer: Tokenizer;
  readonly policy: Policy;
  readonly eosTokenIds: readonly number[];
  readonly maxSequenceTokens?: number;
  /** Raw log-probability of a token; {@link scriptedLogprob} where it is left out. */
  readonly logprob?: (id: number) => number;
  /** Called before each token; may wait or throw. */
  readonly beforeToken?: (sampled: number) => Promise<void> | void;
}

export interface ScriptedGenerator extends Generator {
  readonly opened: OpenOptions[];
  readonly turns: TurnOptions[];
  /** All tokens of each sequence, as the engine holds them. */
  readonly sequences: number[][];
  readonly openSlots: number;
}

/** The log-probability this generator gives a token; raw and sampling ones differ, so a mix-up shows. */
export const scriptedLogprob = (id: number): number => -(1 + (id % 89)) / 10;
export const scriptedSamplingLogprob = (id: number): number => -(1 + (id % 83)) / 20;

const sampledToken = (id: number, logprob: number, topLogprobs: number | undefined): SampledToken => ({
  id,
  logprob,
  samplingLogprob: scriptedSamplingLogprob(id),
  ...(topLogprobs ? { alternatives: [{ id, logprob }] } : {}),
});

/** A bias that no logit outweighs. */
const FORCE = 100;

const forcedBy = ({ sampling }: TurnOptions): number | null => {
  const forced = Object.entries(sampling.logitBias ?? {}).find(([, bias]) => bias >= FORCE);
  return forced === undefined ? null : Number(forced[0]);
};

/** Length of the longest end of `text` that begins a stop string. */
function heldLength(text: string, stops: readonly string[]): number {
  const longest = Math.max(0, ...stops.map((stop) => stop.length - 1));
  for (let length = Math.min(longest, text.length); length > 0; length--)
    if (stops.some((stop) => stop.startsWith(text.slice(-length)))) return length;
  return 0;
}

function firstStop(text: string, stops: readonly string[]): { at: number; stop: string } | null {
  const found = stops
    .map((stop) => ({ at: text.indexOf(stop), stop }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at);
  return found[0] ?? null;
}

export function createScriptedGenerator(options: ScriptedOptions): ScriptedGenerator {
  const info: EngineInfo = {
    modelId: 'scripted',
    modelDigest: 'f'.repeat(64),
    precision: 'fp32',
    vocabSize: options.tokenizer.vocabSize,
    maxSequenceTokens: options.maxSequenceTokens ?? 4096,
    eosTokenIds: options.eosTokenIds,
    maxSequences: 4,
    fingerprint: 'scripted',
  };
  const opened: OpenOptions[] = [];
  const turns: TurnOptions[] = [];
  const sequences: number[][] = [];
  let openSlots = 0;
  return {
    info,
    opened,
    turns,
    sequences,
    get openSlots() {
      return openSlots;
    },
    async open(open = {}) {
      if (open.signal?.aborted) throw new CancelledError();
      opened.push(open);
      openSlots += 1;
      const sequence = new ScriptedSequence(options, open, open.maxLength ?? info.maxSequenceTokens, {
        onTurn: (turn) => turns.push(turn),
        onClose: () => (openSlots -= 1),
      });
      sequences.push(sequence.ids);
      return sequence;
    },
    async loadAdapter() {
      throw new UnavailableError('scripted');
    },
    async unloadAdapter(name) {
      throw new NotFoundError(name);
    },
    listAdapters: () => [],
    async setLiveAdapter() {},
    liveAdapter: null,
    stats: () => ({ running: openSlots, queued: 0, queueLimit: 0, freeSlots: 4 - openSlots }),
    async close() {},
  };
}

interface SequenceHooks {
  readonly onTurn: (turn: TurnOptions) => void;
  readonly onClose: () => void;
}

class ScriptedSequence implements GenerationSequence {
  readonly ids: number[] = [];
  readonly adapterVersion: string;
  readonly cachedTokens = 0;
  #turns = 0;
  #closed = false;

  constructor(
    private readonly options: ScriptedOptions,
    private readonly open: OpenOptions,
    readonly maxLength: number,
    private readonly hooks: SequenceHooks,
  ) {
    this.adapterVersion = open.adapter ?? 'base';
  }

  get length(): number {
    return this.ids.length;
  }

  append(more: readonly number[]): void {
    if (this.#closed) throw new UnavailableError('the sequence is closed');
    if (this.ids.length + more.length > this.maxLength)
      throw new ContextLengthError(`${this.ids.length} + ${more.length} tokens exceed ${this.maxLength}`);
    this.ids.push(...more);
  }

  close(): void {
    if (!this.#closed) this.hooks.onClose();
    this.#closed = true;
  }

  async *generate(turn: TurnOptions): Turn {
    if (this.#closed) throw new UnavailableError('the sequence is closed');
    this.hooks.onTurn(turn);
    const { tokenizer, eosTokenIds, logprob = scriptedLogprob, beforeToken } = this.options;
    const script = this.#script(turn);
    const stopIds = [...turn.stopTokenIds, ...(turn.ignoreEos ? [] : eosTokenIds)];
    const detokenizer = tokenizer.createDetokenizer({ skipSpecial: true });
    let text = '';
    let shown = 0;
    const end = (reason: TurnStopReason, stop: { at: number; stop: string } | null = null): TurnEnd => {
      text += stop === null ? detokenizer.flush() : '';
      const fullText = stop === null ? text : text.slice(0, stop.at);
      return { reason, stopString: stop?.stop ?? null, text: fullText.slice(shown), fullText };
    };
    for (let sampled = 0; ; sampled++) {
      if (this.#isOver()) return end('cancelled');
      if (this.ids.length >= this.maxLength) return end('context');
      if (sampled >= turn.maxTokens) return end('max_tokens');
      await beforeToken?.(sampled);
      if (this.#isOver()) return end('cancelled');
      const next = script.next();
      const id = next.done ? (eosTokenIds[0] as number) : next.value;
      this.ids.push(id);
      text += detokenizer.push(id);
      const stop = firstStop(text, turn.stopStrings);
      const safe = stop === null ? text.length - heldLength(text, turn.stopStrings) : stop.at;
      const token = sampledToken(id, logprob(id), turn.topLogprobs);
      const step = { token, text: text.slice(shown, safe) };
      shown = Math.max(shown, safe);
      yield step;
      if (stop !== null) return end('stop_string', stop);
      if (stopIds.includes(id)) return end('stop_token');
    }
  }

  #script(turn: TurnOptions): Iterator<number> {
    const forced = forcedBy(turn);
    return (forced === null ? this.options.policy(this.#turns++, this.ids) : [forced])[Symbol.iterator]();
  }

  #isOver(): boolean {
    return this.#closed || this.open.signal?.aborted === true;
  }
}

/** Turns written as text, each encoded by the tokenizer, or as ids. */
export const scriptOf =
  (tokenizer: Tokenizer, turns: readonly (string | readonly number[])[]): Policy =>
  (turn) => {
    const script = turns[turn] ?? [];
    return typeof script === 'string' ? tokenizer.encodePlain(script) : script;
  };

/** Every id is equally likely, forever; the end token too. */
export function uniformPolicy(vocabSize: number, seed: number): Policy {
  let state = seed >>> 0;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return function* () {
    for (;;) yield Math.floor(random() * vocabSize);
  };
}
