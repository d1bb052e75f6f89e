// Several answers to each question.

import {
  evaluate,
  markdownTranscripts,
  type Question,
  readResults,
  readTranscripts,
} from '../../src/evaluation/index.js';
import type { RolloutRunner } from '../../src/rollout/index.js';
import { CAPITALS, createSetting, questions, useRunFolder } from './support/setting.js';

let folder: string;
useRunFolder((made) => {
  folder = made;
});

/** Hears seeds and temperatures of what is asked, by question and in order. */
function listening(inner: RolloutRunner) {
  const asked: { country: string; seed: number | undefined; temperature: number | undefined }[] = [];
  const runner: RolloutRunner = {
    run(request) {
      const country = /of (\w+)\?/.exec(JSON.stringify(request.messages))?.[1] as string;
      asked.push({ country, seed: request.seed, temperature: request.sampling?.temperature });
      return inner.run(request);
    },
  };
  return { asked, runner };
}

test('samples are numbered, seeded by question and number, and kept one by one; more may be asked for', async () => {
  const { options } = createSetting();
  const sampled = { ...options, temperature: 1, seed: 7 };
  const first = listening(options.runner as RolloutRunner);
  const results = await evaluate({ ...sampled, runner: first.runner, samples: 2 });
  expect(results.map(({ id, sample }) => [id, sample])).toEqual(
    questions.flatMap(({ id }) => [
      [id, 0],
      [id, 1],
    ]),
  );
  expect(new Set(first.asked.map(({ seed }) => seed)).size).toBe(8);
  expect(new Set(first.asked.map(({ temperature }) => temperature))).toEqual(new Set([1]));
  expect(await readResults(folder)).toHaveLength(8);
  const stored = await readTranscripts(folder);
  expect(stored.map(({ id, sample }) => `${id} ${sample}`).sort()).toEqual(
    results.map(({ id, sample }) => `${id} ${sample}`).sort(),
  );
  expect(stored.every(({ stop }) => stop === 'answer')).toBe(true);
  expect(markdownTranscripts(stored)).toMatch(/^iberia, q0, sample 1; gold: Lisbon;/m);

  const second = listening(options.runner as RolloutRunner);
  const more = await evaluate({ ...sampled, runner: second.runner, samples: 3 });
  expect(more.filter(({ sample }) => sample !== 2)).toEqual(results);
  expect(second.asked.map(({ country }) => country).sort()).toEqual(Object.keys(CAPITALS).sort());

  // Alone and in another order, a sample has the same seed.
  const third = listening(options.runner as RolloutRunner);
  const { output: _output, ...inMemory } = sampled;
  await evaluate({ ...inMemory, runner: third.runner, questions: [...questions].reverse(), samples: 3 });
  const seedsOf = (asked: typeof first.asked) =>
    asked.map(({ country, seed }) => `${country} ${seed}`).sort();
  expect(seedsOf(third.asked)).toEqual(seedsOf([...first.asked, ...second.asked]));
  const other = listening(options.runner as RolloutRunner);
  await evaluate({ ...inMemory, seed: 8, runner: other.runner, samples: 1 });
  expect(other.asked.filter(({ seed }) => third.asked.some((one) => one.seed === seed))).toEqual([]);
});

test('a sample keeps its runner when more samples or other questions are asked for', async () => {
  const { options } = createSetting();
  const { output: _output, ...inMemory } = options;
  const placesOf = async (asked: readonly Question[], samples: number) => {
    const places = new Map<string, number>();
    const runners = [0, 1, 2].map(
      (slot): RolloutRunner => ({
        run(request) {
          places.set(`${request.seed}`, slot);
          return (options.runner as RolloutRunner).run(request);
        },
      }),
    );
    await evaluate({ ...inMemory, temperature: 1, runner: runners, questions: asked, samples });
    return places;
  };
  const few = await placesOf(questions.slice(2), 2);
  const many = await placesOf(questions, 4);
  expect(few.size).toBe(4);
  expect([...few].filter(([seed, slot]) => many.get(seed) !== slot)).toEqual([]);
  expect(new Set(many.values()).size).toBe(3);
});

test('several greedy samples, or none, are refused', async () => {
  const { options } = createSetting();
  await expect(evaluate({ ...options, samples: 2 })).rejects.toThrow(/temperature above 0/);
  await expect(evaluate({ ...options, samples: 0, temperature: 1 })).rejects.toThrow(/one sample or more/);
});
