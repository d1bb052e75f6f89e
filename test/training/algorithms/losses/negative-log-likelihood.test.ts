import { negativeLogLikelihood } from '../../../../src/training/algorithms/losses/negative-log-likelihood.js';
import { DEFAULT_SETTINGS } from '../../../../src/training/algorithms/settings.js';

const lossOf = (probabilities: readonly number[], focalGamma: number) =>
  negativeLogLikelihood(
    {
      logprobs: Float64Array.from(probabilities, Math.log),
      logprobsOld: new Float64Array(probabilities.length),
      advantages: new Float64Array(probabilities.length),
      weights: new Float64Array(probabilities.length).fill(1),
      chosen: null,
    },
    { ...DEFAULT_SETTINGS, focalGamma },
  );

test('gamma 0 is cross-entropy, bit for bit, even of a certain token', () => {
  const { losses, gradients } = lossOf([0.3, 0.999_999, 1], 0);
  expect([...losses]).toEqual([-Math.log(0.3), -Math.log(0.999_999), -0]);
  expect([...gradients]).toEqual([-1, -1, -1]);
});

test('gamma 2: values of the formula, and weight goes to what is uncertain', () => {
  const { losses, gradients } = lossOf([0.5, 0.9], 2);
  expect(losses[0]).toBeCloseTo(0.25 * Math.LN2, 12);
  expect(losses[1]).toBeCloseTo(0.01 * 0.105360515657826, 12);
  expect(gradients[0]! / gradients[1]!).toBeGreaterThan(20);
});

test.each([0.5, 1, 2])('gamma %p: a certain token has neither loss nor gradient', (gamma) => {
  const { losses, gradients } = lossOf([1, 1 - 1e-16], gamma);
  for (const value of [...losses, ...gradients]) expect(Math.abs(value)).toBeLessThan(1e-7);
});
