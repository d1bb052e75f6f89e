import type { GenerationSequence, Turn, TurnEnd, TurnStep } from '../../src/engine/index.js';
import {
  ContextLengthError,
  InvalidInputError,
  OverloadedError,
  UnavailableError,
} from '../../src/errors.js';
import { readJson, startEngine, turnOptions } from './support/tiny-models.js';

const { prompt, continuation } = readJson('forward', 'tiny-llama.json').decode as {
  prompt: number[];
  continuation: number[];
};

async function readTurn(turn: Turn): Promise<{ steps: TurnStep[]; ids: number[]; end: TurnEnd }> {
  const steps: TurnStep[] = [];
  for (;;) {
    const next = await turn.next();
    if (next.done) return { steps, ids: steps.map((step) => step.token.id), end: next.value };
    steps.push(next.value);
  }
}

const greedy = (changes = {}) => turnOptions({ maxTokens: 24, ...changes }, { temperature: 0 });

async function begin(sequence: GenerationSequence, ids = prompt, options = greedy()) {
  sequence.append(ids);
  return readTurn(sequence.generate(options));
}

/** Waits until `holds`, as answers of the worker arrive in their own time. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
}

test('one to N sequences through the worker', async () => {
  const engine = await startEngine();
  expect(engine.info).toMatchObject({
    precision: 'fp32',
    vocabSize: 512,
    maxSequenceTokens: 128,
    maxSequences: 4,
  });
  expect(engine.stats()).toEqual({ running: 0, queued: 0, queueLimit: 64, freeSlots: 4 });
  const sequences = await Promise.all([1, 2, 3].map((seed) => engine.open({ seed, adapter: null })));
  expect(engine.stats()).toMatchObject({ running: 3, freeSlots: 1 });
  for (const { ids, end, steps } of await Promise.all(sequences.map((sequence) => begin(sequence)))) {
    expect(ids).toEqual(continuation);
    expect(end).toMatchObject({ reason: 'max_tokens', stopString: null });
    expect(steps.map((step) => step.text).join('') + end.text).toBe(end.fullText);
  }
  expect(sequences.map((sequence) => sequence.length)).toEqual([41, 41, 41]);
  for (const sequence of sequences) sequence.close();
  sequences[0]?.close();
  expect(engine.stats()).toMatchObject({ running: 0, freeSlots: 4 });
});

test('turns grow one sequence: what was sampled stays, what is appended is read by the next turn', async () => {
  const engine = await startEngine();
  const sequence = await engine.open();
  const first = await begin(sequence, prompt, greedy({ maxTokens: 10 }));
  const second = await readTurn(sequence.generate(greedy({ maxTokens: 14 })));
  expect([...first.ids, ...second.ids]).toEqual(continuation);
  const observation = [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23];
  const third = await begin(sequence, observation, greedy({ maxTokens: 12 }));
  const whole = await engine.open();
  const again = await begin(whole, [...prompt, ...continuation, ...observation], greedy({ maxTokens: 12 }));
  expect(third.ids).toEqual(again.ids);
  expect(sequence.length).toBe(prompt.length + continuation.length + observation.length + 12);
});
