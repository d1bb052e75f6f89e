import fc from 'fast-check';
import { CancelledError } from '../../../src/errors.js';
import type { RolloutEvent } from '../../../src/rollout/index.js';
import { type ChoiceEvent, mergeRollouts } from '../../../src/server/answers/merge.js';
import { eventually } from '../../support/eventually.js';
import { type Script, scriptedRunner } from '../../support/scripted-runner.js';

const sampling = {
  temperature: 0,
  topP: 1,
  topK: 0,
  minP: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  repetitionPenalty: 1,
  logitBias: {},
};

function merge(script: Script, count: number, concurrency = 16, signal = new AbortController().signal) {
  const runner = scriptedRunner(script);
  const events = mergeRollouts(
    (choice, own) => runner.run({ method: 'direct', messages: [], sampling, id: `x-${choice}`, signal: own }),
    { count, concurrency, signal },
  );
  return { runner, events };
}

async function drain(events: AsyncIterable<ChoiceEvent>): Promise<ChoiceEvent[]> {
  const all: ChoiceEvent[] = [];
  for await (const item of events) all.push(item);
  return all;
}

const textOf = (items: readonly ChoiceEvent[], choice: number): string =>
  items
    .filter((item) => item.choice === choice)
    .map(({ event }) => ('text' in event ? event.text : ''))
    .join('');

test('each choice arrives whole and in order, whatever the others do', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.nat({ max: 3 }), { maxLength: 5 }), { minLength: 1, maxLength: 6 }),
      fc.integer({ min: 1, max: 6 }),
      async (waits, concurrency) => {
        const { runner, events } = merge(
          (_, choice) => waits[choice]!.flatMap((waitMs, at) => [{ waitMs }, { think: `${choice}.${at} ` }]),
          waits.length,
          concurrency,
        );
        const items = await drain(events);
        waits.forEach((own, choice) => {
          expect(textOf(items, choice)).toBe(own.map((_, at) => `${choice}.${at} `).join(''));
          const ends = items.filter((item) => item.choice === choice && item.event.type === 'done');
          expect(ends).toHaveLength(1);
        });
        expect(runner.ends).toEqual(Array(waits.length).fill('done'));
      },
    ),
    { numRuns: 30 },
  );
});

test('no more run at once than allowed', async () => {
  let most = 0;
  const { runner, events } = merge(() => [{ waitMs: 2 }, { think: 'x' }, { waitMs: 2 }], 7, 3);
  for await (const _ of events) most = Math.max(most, runner.running);
  expect(most).toBe(3);
  expect(runner.ends).toHaveLength(7);
});

test('a reader that pauses pauses the rollouts: at most one event ahead each', async () => {
  const { runner, events } = merge(() => Array(100).fill({ think: 'x' }), 2);
  await events.next();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(runner.yielded).toBeLessThanOrEqual(4);
  await events.return();
  await eventually(() => runner.running === 0);
});

test('the first failure ends all', async () => {
  const failure = new Error('broke');
  const { runner, events } = merge(
    (_, choice) =>
      choice === 1 ? [{ waitMs: 5 }, { fail: failure }] : [{ think: 'x' }, { until: new Promise(() => {}) }],
    3,
  );
  await expect(drain(events)).rejects.toBe(failure);
  await eventually(() => runner.running === 0);
});

test('an abort throws its reason at once, even when rollouts do not heed it', async () => {
  const deaf = async function* (): AsyncGenerator<RolloutEvent, void, void> {
    await new Promise(() => {});
  };
  const controller = new AbortController();
  const events = mergeRollouts(deaf, { count: 2, concurrency: 2, signal: controller.signal });
  const ended = expect(drain(events)).rejects.toThrow('gone');
  controller.abort(new CancelledError('gone'));
  await ended;
});

test('events of several requests that wait already do not keep the thread from others', async () => {
  const spin = (milliseconds: number): void => {
    const until = performance.now() + milliseconds;
    while (performance.now() < until);
  };
  let turns = 0;
  let counting = true;
  const count = (): void => {
    turns += 1;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  const slowReader = async (): Promise<void> => {
    const { events } = merge(() => Array(30).fill({ noise: 'x' }), 1);
    for await (const _item of events) spin(1);
  };
  await Promise.all([slowReader(), slowReader(), slowReader()]);
  counting = false;
  expect(turns).toBeGreaterThanOrEqual(10);
});
