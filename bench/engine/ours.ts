// Our engine as the benchmark sees it: through the product's own interface, sampling and threads included.

import { type Generator, RAW_POLICY, type TurnOptions } from '#searchloop/engine/index.js';
import type { Timing } from '../rivals/process.js';

/** Tokens that a sequence may run ahead while others are still being read in. */
const SLACK = 160;

function randomIds(engine: Generator, count: number, seed: number): number[] {
  let state = (seed * 2654435761 + 12345) >>> 0;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 100 + (state % (engine.info.vocabSize - 200));
  });
}

const turn = (maxTokens: number): TurnOptions => ({
  sampling: { ...RAW_POLICY, temperature: 0 },
  maxTokens,
  stopStrings: [],
  stopTokenIds: [],
  ignoreEos: true,
});

let seed = 1000;

/**
 * Decode speed with `sequences` at `context` tokens of context: the time for `tokens` more tokens each, from the
 * moment at which all sequences have begun to sample.
 * @param adapters names in turn for the sequences; empty: the base model
 */
export async function decode(
  engine: Generator,
  sequences: number,
  context: number,
  tokens: number,
  adapters: readonly string[] = [],
): Promise<Timing> {
  const counts = new Array<number>(sequences).fill(0);
  let begin = 0;
  let seconds = 0;
  let base = 0;
  const total = () => counts.reduce((sum, count) => sum + count, 0);
  const opened = await Promise.all(
    counts.map((_, index) =>
      engine.open({ adapter: adapters[index % Math.max(1, adapters.length)] ?? null }),
    ),
  );
  await Promise.all(
    opened.map(async (sequence, index) => {
      // One context for all but its last token: it is read once and copied, in every round.
      sequence.append([...randomIds(engine, context - 1, 1), 100 + index]);
      for await (const _step of sequence.generate(turn(tokens + SLACK))) {
        counts[index]!++;
        if (begin === 0 && counts.every((count) => count >= 2)) {
          begin = performance.now();
          base = total();
        } else if (begin !== 0 && seconds === 0 && total() - base >= tokens * sequences)
          seconds = (performance.now() - begin) / 1000;
        if (seconds !== 0) break;
      }
      sequence.close();
    }),
  );
  if (seconds === 0) throw new Error('the sequences ended before enough tokens were counted');
  return { seconds, tokens: tokens * sequences };
}

/** Time from the hand-over of a prompt to its first token. */
export async function prefill(
  engine: Generator,
  tokens: number,
  adapter: string | null = null,
): Promise<Timing> {
  const sequence = await engine.open({ adapter });
  const ids = randomIds(engine, tokens, seed++);
  const begin = performance.now();
  sequence.append(ids);
  for await (const _step of sequence.generate(turn(1)));
  const seconds = (performance.now() - begin) / 1000;
  sequence.close();
  return { seconds, tokens };
}
