// The whole loop on a real model, small: the warm start searches badly, a few steps of GRPO make it better, on
// questions whose facts it cannot have seen.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTinyPlace, type TinyPlace } from '../../../bench/tiny-world/house.js';
import { runTiny } from '../../../bench/tiny-world/run.js';
import { mean } from '../../../src/util/mean.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-tiny-'));
let place: TinyPlace;
beforeAll(async () => {
  place = await openTinyPlace(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));
jest.setTimeout(1_800_000);

test('a few steps of grpo raise the reward', async () => {
  const rewards: number[] = [];
  const { curve, emptyIndex } = await runTiny({
    place,
    folder: join(folder, 'grpo'),
    algorithm: 'grpo',
    seed: 1,
    groupSize: 5,
    topK: 3,
    masked: true,
    training: { 'training.steps': 10, 'training.validateEvery': 10 },
    curveQuestions: 60,
    finalQuestions: 60,
    threads: 2,
    onStep: ({ metrics }) => rewards.push(metrics.reward as number),
  });
  expect(rewards).toHaveLength(10);
  expect(mean(rewards.slice(-3))).toBeGreaterThan(mean(rewards.slice(0, 3)) + 0.1);
  const [start, end] = curve;
  expect(start?.exactMatch).toBeLessThan(0.3);
  expect(end?.exactMatch).toBeGreaterThan((start?.exactMatch ?? 1) + 0.1);
  // What it knows, it knows from the search.
  expect(emptyIndex.exactMatch).toBeLessThan(0.05);
});
