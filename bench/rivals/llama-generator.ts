// llama.cpp behind the Generator interface, so that the very same rollout loop runs on it. Greedy only: it is
// for the rollouts benchmark, which samples at temperature 0.

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { GenerationSequence, Generator, Turn, TurnEnd, TurnOptions } from '#searchloop/engine/index.js';
import { createStopMatcher, type Tokenizer } from '#searchloop/tokenizer/index.js';

export interface LlamaGeneratorOptions {
  readonly python: string;
  readonly script: string;
  readonly model: string;
  readonly threads: number;
  readonly sequences: number;
  readonly capacity: number;
  readonly unified: boolean;
  readonly tokenizer: Tokenizer;
  readonly info: Generator['info'];
}

type Listener = (turn: number, token: number) => void;

class Pipe {
  readonly listeners = new Map<number, Listener>();
  readonly free: number[];

  constructor(
    private readonly child: ChildProcess,
    sequences: number,
  ) {
    this.free = Array.from({ length: sequences }, (_, index) => index);
  }

  send(command: object): void {
    this.child.stdin!.write(`${JSON.stringify(command)}\n`);
  }

  close(): void {
    this.child.stdin!.end();
  }
}

export async function startLlamaGenerator(options: LlamaGeneratorOptions): Promise<Generator> {
  const { python, script, model, threads, sequences, capacity, unified } = options;
  const args = [script, model, threads, sequences, capacity, unified ? 'unified' : 'split'].map(String);
  const child = spawn(python, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  const pipe = new Pipe(child, sequences);
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`llama.cpp ended with ${code}`)));
    createInterface({ input: child.stdout! }).on('line', (line) => {
      if (line.startsWith('{')) resolve();
      if (line.startsWith('['))
        for (const [sequence, turn, token] of JSON.parse(line) as [number, number, number][])
          pipe.listeners.get(sequence)?.(turn, token);
    });
  });
  const unsupported = (): never => {
    throw new Error('not part of the benchmark');
  };
  return {
    info: options.info,
    open: async () => new LlamaSequence(pipe, options),
    loadAdapter: unsupported,
    unloadAdapter: unsupported,
    listAdapters: () => [],
    setLiveAdapter: unsupported,
    liveAdapter: null,
    stats: () => ({ running: 0, queued: 0, queueLimit: 0, freeSlots: pipe.free.length }),
    close: async () => pipe.close(),
  };
}

class LlamaSequence implements GenerationSequence {
  readonly adapterVersion = 'base';
  readonly maxLength: number;
  readonly cachedTokens = 0;
  length = 0;
  readonly #id: number;
  #turn = 0;
  #closed = false;

  constructor(
    private readonly pipe: Pipe,
    private readonly options: LlamaGeneratorOptions,
  ) {
    const id = pipe.free.pop();
    if (id === undefined) throw new Error('no free sequence');
    this.#id = id;
    this.maxLength = options.capacity;
    pipe.send({ op: 'open', sequence: id });
  }

  append(ids: readonly number[]): void {
    this.length += ids.length;
    this.pipe.send({ op: 'append', sequence: this.#id, ids });
  }

  async *generate(turn: TurnOptions): Turn {
    const { tokenizer, info } = this.options;
    const number = ++this.#turn;
    const arrived: number[] = [];
    let wake = () => {};
    this.pipe.listeners.set(this.#id, (of, token) => {
      if (of !== number) return;
      arrived.push(token);
      wake();
    });
    const most = Math.min(turn.maxTokens, this.maxLength - this.length);
    this.pipe.send({ op: 'generate', sequence: this.#id, turn: number, most });
    const detokenizer = tokenizer.createDetokenizer({ skipSpecial: true });
    const matcher = createStopMatcher(turn.stopStrings);
    const ends = new Set(turn.stopTokenIds.length > 0 ? turn.stopTokenIds : info.eosTokenIds);
    let fullText = '';
    let sampled = 0;
    const end = (reason: TurnEnd['reason'], stopString: string | null, text: string): TurnEnd => {
      this.pipe.send({ op: 'stop', sequence: this.#id, length: this.length });
      return { reason, stopString, text, fullText: fullText + text };
    };
    try {
      for (;;) {
        while (arrived.length === 0) await new Promise<void>((resolve) => (wake = resolve));
        const id = arrived.shift()!;
        sampled++;
        this.length++;
        const stopped = ends.has(id);
        const { safe, matched } = stopped ? { safe: '', matched: null } : matcher.push(detokenizer.push(id));
        fullText += safe;
        yield { token: { id, logprob: 0, samplingLogprob: 0 }, text: safe };
        if (matched !== null) return end('stop_string', matched, '');
        if (stopped) return end('stop_token', null, matcher.flush());
        if (sampled >= most)
          return end(sampled < turn.maxTokens ? 'context' : 'max_tokens', null, matcher.flush());
      }
    } finally {
      this.pipe.listeners.delete(this.#id);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.pipe.send({ op: 'close', sequence: this.#id });
    this.pipe.free.push(this.#id);
  }
}
