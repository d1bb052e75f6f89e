import { learningRate, type Schedule } from '../../../src/training/optimizers/index.js';

const rates = (schedule: Schedule, total: number, steps: readonly number[]): number[] =>
  steps.map((step) => learningRate(schedule, step, total));
const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 12));

test('warm-up over a share of the steps, then constant', () => {
  const schedule: Schedule = { peak: 2, warmup: { share: 0.285 }, shape: 'constant' };
  expect(rates(schedule, 20, [0, 1, 4, 5, 19, 99])).toEqual(close([0.4, 0.8, 2, 2, 2, 2]));
});

test('warm-up over a number of steps, then a cosine down to 0', () => {
  const schedule: Schedule = { peak: 1, warmup: { steps: 2 }, shape: 'cosine' };
  expect(rates(schedule, 10, [0, 1, 2, 6, 10, 50])).toEqual(close([0.5, 1, 1, 0.5, 0, 0]));
});

test('no warm-up at all', () => {
  expect(rates({ peak: 1, warmup: { share: 0 }, shape: 'cosine' }, 4, [0, 2, 4])).toEqual(close([1, 0.5, 0]));
});

test('what makes no sense is named', () => {
  expect(() => learningRate({ peak: 1, warmup: { share: 2 }, shape: 'constant' }, 0, 5)).toThrow(
    'expected 0 to 1, got 2',
  );
  expect(() => learningRate({ peak: 1, warmup: { steps: 1.5 }, shape: 'constant' }, 0, 5)).toThrow('got 1.5');
  expect(() => learningRate({ peak: 1, warmup: { steps: 1 }, shape: 'constant' }, 0, 0)).toThrow(
    'totalSteps',
  );
});
