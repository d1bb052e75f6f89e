// A rival engine in a process of its own, asked by one JSON line at a time.

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';

export interface Timing {
  readonly seconds: number;
  readonly tokens: number;
}

export interface RivalOpen {
  readonly model: string;
  readonly adapter: string | null;
  readonly threads: number;
  readonly sequences: number;
  /** Tokens that one sequence can hold. */
  readonly capacity: number;
  readonly unified?: boolean;
}

export interface Rival {
  readonly name: string;
  decode(sequences: number, context: number, tokens: number): Promise<Timing>;
  prefill(tokens: number): Promise<Timing>;
  close(): Promise<void>;
}

export async function startRival(
  name: string,
  command: string,
  args: readonly string[],
  options: RivalOpen,
): Promise<Rival> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout! });
  const ask = asker(name, child, lines);
  await ask({ op: 'open', ...options });
  return {
    name,
    decode: (sequences, context, tokens) =>
      ask({ op: 'decode', sequences, context, tokens }) as Promise<Timing>,
    prefill: (tokens) => ask({ op: 'prefill', tokens }) as Promise<Timing>,
    close: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.stdin!.end(`${JSON.stringify({ op: 'close' })}\n`);
      await ended;
    },
  };
}

function asker(name: string, child: ChildProcess, lines: Interface): (command: object) => Promise<unknown> {
  const iterator = lines[Symbol.asyncIterator]();
  return async (command) => {
    child.stdin!.write(`${JSON.stringify(command)}\n`);
    for (;;) {
      const { value, done } = await iterator.next();
      if (done) throw new Error(`${name} ended`);
      // Libraries may print lines of their own.
      if (!value.startsWith('{')) continue;
      const answer = JSON.parse(value) as { error?: string };
      if (answer.error) throw new Error(`${name}: ${answer.error}`);
      return answer;
    }
  };
}
