// A step that is rejected leaves everything as it was: values, moments and counts, of policy and critic.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NonFiniteError } from '../../../src/errors.js';
import type { StepWork } from '../../../src/training/index.js';
import { madeRollouts, stepWork } from '../support/rollouts.js';
import { beginSession, controlOf, VOCAB } from '../support/session.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-rejected-'));
afterAll(() => rmSync(folder, { recursive: true }));

const control = controlOf(60);
const rollouts = madeRollouts(3, 4, VOCAB, 'v0');

// One pass over the twelve is four micro-batches or so.
test.each([
  ['in the first micro-batch', 'grpo', 0, {}],
  ['in the second one', 'grpo', 1, {}],
  ['in the last one', 'grpo', 3, {}],
  ['after updates of the policy', 'grpo', 8, { batchEpochs: 2, miniBatchSequences: 6 }],
  ['after an update of the critic', 'ppo', 0, {}],
  ['after updates of both', 'ppo', 8, { batchEpochs: 2, miniBatchSequences: 6 }],
] as const)('a number that is not finite %s (%s, pass %i)', async (_, algorithm, after, more) => {
  const critic = algorithm === 'ppo';
  const poisoned = await beginSession(folder, { critic, poison: { after } });
  const clean = await beginSession(folder, { critic });
  const work = (step: number, { start }: typeof clean): StepWork =>
    stepWork(algorithm, rollouts, { step, reference: start.folder, ...more });
  const failure = await poisoned.session.step(work(1, poisoned), control).catch((error) => error);
  expect(failure).toBeInstanceOf(NonFiniteError);
  expect(failure.message).toMatch(/sequence \d+, token \d+/);
  expect(poisoned.session.standsAt.state).toBe(poisoned.start.state);
  // What moments and counts were left at shows in the steps that follow.
  for (const step of [1, 2]) {
    const again = await poisoned.session.step(work(step, poisoned), control);
    const undisturbed = await clean.session.step(work(step, clean), control);
    expect(again.state).toBe(undisturbed.state);
    expect(again.metrics).toEqual(undisturbed.metrics);
  }
});
