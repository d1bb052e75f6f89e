// Micro-batches that run side by side on the real model.

import { CancelledError, NonFiniteError } from '../../../src/errors.js';
import { readAdapter } from '../../../src/model/index.js';
import { openRuntime } from '../../../src/runtime/index.js';
import { NO_METRICS, type Objective } from '../../../src/training/algorithms/index.js';
import { openTrainingModel } from '../../../src/training/model/index.js';
import {
  accumulateGradients,
  type StepControl,
  scoreSequences,
} from '../../../src/training/step/accumulate.js';
import type { TrainingLane, TrainingModel } from '../../../src/training/training-model.js';
import { fixture } from '../../support/fixtures.js';
import { modelWeights } from '../../support/model-weights.js';
import { relativeDifference } from '../model/support/oracle.js';

jest.setTimeout(120_000);

const NAME = 'tiny-llama';
const weights = modelWeights(NAME);
const opened: TrainingModel[] = [];

afterEach(() => {
  for (const model of opened.splice(0)) model.close();
});

async function open(lanes: number): Promise<TrainingModel> {
  const model = await openTrainingModel({
    runtime: await openRuntime(),
    weights,
    precision: 'fp32',
    threads: 2,
    spinning: false,
    trainable: { kind: 'lora', adapter: readAdapter(fixture('lora', NAME, 'policy'), weights.config) },
    lanes,
  });
  opened.push(model);
  return model;
}

const LENGTHS = [40, 12, 33, 7, 26, 19, 3];
const rows = LENGTHS.map((length, row) =>
  Array.from({ length }, (_, t) => (31 * row + 7 * t * t + t) % weights.config.vocabSize),
);
const targets = LENGTHS.map((length) => Array.from({ length: length - 1 }, (_, t) => t + 1));
const COUNT = targets.flat().length;

/** The mean negative log-probability of all targets. */
const objective = (onEvaluate: () => void = () => {}): Objective => ({
  kind: 'policy',
  targets,
  empty: false,
  needsBatchLogprobs: false,
  prepare: () => {},
  evaluate(_members, { logprobs = [] }) {
    onEvaluate();
    const values = Array.from(logprobs);
    return {
      loss: values.reduce((sum, value) => sum - value / COUNT, 0),
      gradients: {
        logprobs: Float64Array.from(values, () => -1 / COUNT),
        entropies: null,
        values: null,
      },
      metrics: { ...NO_METRICS, sums: { tokens: values.length } },
    };
  },
});

const control = (tokens: number, throwIfCancelled = (): void => {}): StepControl => ({
  microBatchTokens: tokens,
  throwIfCancelled,
});

async function run(model: TrainingModel, tokens: number) {
  const accumulated = await accumulateGradients(model, rows, objective(), control(tokens));
  return { accumulated, gradients: model.parameters.map(({ gradient }) => gradient.slice()) };
}

test('two lanes have the loss and the gradients of one, to the bit the same each time', async () => {
  const alone = await run(await open(1), 1000);
  const model = await open(2);
  const first = await run(model, 90);
  expect(await run(model, 90)).toEqual(first);
  expect(first.accumulated.tokens).toBe(alone.accumulated.tokens);
  expect(first.accumulated.metrics).toEqual(alone.accumulated.metrics);
  expect(first.accumulated.loss).toBeCloseTo(alone.accumulated.loss, 6);
  for (const [i, gradient] of first.gradients.entries())
    expect(relativeDifference(gradient, alone.gradients[i] as Float32Array)).toBeLessThan(1e-5);
});

test('scores come back at their sequences', async () => {
  const alone = await scoreSequences(await open(1), rows, targets, control(1000));
  const found = await scoreSequences(await open(2), rows, targets, control(60));
  for (const [i, { logprobs }] of found.entries())
    expect(relativeDifference(logprobs, alone[i]?.logprobs as Float32Array)).toBeLessThan(1e-5);
});

test('a batch that is one micro-batch runs with all threads', async () => {
  const model = await open(2);
  for (const lane of model.lanes) jest.spyOn(lane, 'forward').mockRejectedValue(new Error('no lane'));
  expect((await run(model, 1000)).accumulated.tokens).toBe(LENGTHS.reduce((sum, length) => sum + length, 0));
});

test('the tokens that run at once stay within the limit, also where a sequence is longer than a share', async () => {
  const model = await open(2);
  const running = new Map<TrainingLane, number>();
  let most = 0;
  for (const lane of [model, ...model.lanes]) {
    const forward = lane.forward.bind(lane);
    const backward = lane.backward.bind(lane);
    jest.spyOn(lane, 'forward').mockImplementation((batch) => {
      running.set(lane, batch.sequences.flatMap(({ tokenIds }) => tokenIds).length);
      most = Math.max(
        most,
        [...running.values()].reduce((sum, tokens) => sum + tokens, 0),
      );
      return forward(batch);
    });
    jest
      .spyOn(lane, 'backward')
      .mockImplementation((gradients) => backward(gradients).finally(() => running.delete(lane)));
  }
  // 40, 33 and 26 are more than half of it.
  const first = await run(model, 45);
  expect(most).toBeLessThanOrEqual(45);
  expect(most).toBeGreaterThan(26);
  expect(await run(model, 45)).toEqual(first);
  const alone = await run(await open(1), 1000);
  for (const [i, gradient] of first.gradients.entries())
    expect(relativeDifference(gradient, alone.gradients[i] as Float32Array)).toBeLessThan(1e-5);
});

test('terminate ends both lanes, and the next run is not touched by it', async () => {
  const model = await open(2);
  const expected = await run(model, 60);
  let evaluations = 0;
  const stopping = objective(() => {
    if (++evaluations === 2) model.terminate();
  });
  await expect(accumulateGradients(model, rows, stopping, control(60))).rejects.toThrow(CancelledError);
  expect(evaluations).toBeLessThan(4);
  expect(await run(model, 60)).toEqual(expected);
});

test('what failed in one lane is told, not that the other one was ended', async () => {
  const model = await open(2);
  let evaluations = 0;
  const failing = objective(() => {
    if (++evaluations === 3) throw new NonFiniteError('the loss is NaN');
  });
  await expect(accumulateGradients(model, rows, failing, control(60))).rejects.toThrow('the loss is NaN');
});
