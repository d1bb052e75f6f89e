// While users ask, no micro-batch begins; one that has run forward goes on to its end.

import { setTimeout as sleep } from 'node:timers/promises';
import { pausable } from '../../../src/loop/online/trainer-task.js';
import type { TrainedPart, TrainingLane } from '../../../src/training/index.js';

const calls: string[] = [];
beforeEach(() => calls.splice(0));

const laneOf = (name: string): TrainingLane => ({
  score: async (batch) => void calls.push(`${name} scores ${batch}`) as never,
  forward: async (batch) => void calls.push(`${name} forward ${batch}`) as never,
  backward: async (gradients) => void calls.push(`${name} backward ${gradients}`),
});
const part = {
  form: 'a form',
  model: { ...laneOf('model'), lanes: [laneOf('lane 0'), laneOf('lane 1')], parameters: ['of the model'] },
} as unknown as TrainedPart;

const cellOf = (value: number): Int32Array => new Int32Array(new SharedArrayBuffer(4)).fill(value);
const lanesOf = ({ model }: TrainedPart): TrainingLane[] => [model, ...model.lanes];
const batch = 'b' as never;

test.each(['score', 'forward'] as const)('%s waits for the end of the pause, on every lane', async (work) => {
  const pause = cellOf(1);
  const done = lanesOf(pausable(part, pause)).map((lane) => lane[work](batch));
  await sleep(20);
  expect(calls).toEqual([]);
  Atomics.store(pause, 0, 0);
  await Promise.all(done);
  const does = work === 'score' ? 'scores' : 'forward';
  expect(calls.sort()).toEqual(['lane 0', 'lane 1', 'model'].map((name) => `${name} ${does} b`));
});

test('backward waits for nobody, and without a pause nothing does', async () => {
  for (const lane of lanesOf(pausable(part, cellOf(1)))) await lane.backward(batch);
  expect(calls).toEqual(['model backward b', 'lane 0 backward b', 'lane 1 backward b']);
  calls.splice(0);
  for (const lane of lanesOf(pausable(part, cellOf(0)))) await lane.forward(batch);
  expect(calls).toEqual(['model forward b', 'lane 0 forward b', 'lane 1 forward b']);
});

test('all else of a part is as it was', () => {
  expect(pausable(part, cellOf(1))).toMatchObject({
    form: 'a form',
    model: { parameters: ['of the model'] },
  });
});
