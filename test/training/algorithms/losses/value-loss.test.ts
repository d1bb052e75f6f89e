import { createValueObjective, summariseMetrics } from '../../../../src/training/algorithms/index.js';
import { atTargets, difference, led, type Matrix, readLosses, toMatrix } from '../support.js';

interface ValueCase {
  readonly case: string;
  readonly epsV: number;
  readonly mask: Matrix;
  readonly values: Matrix;
  readonly valuesOld: Matrix;
  readonly returns: Matrix;
  readonly ours: { readonly loss: number; readonly gradValues: Matrix };
  readonly verl: { readonly clipFraction: number };
}

const objectiveOf = (c: ValueCase) =>
  createValueObjective(
    c.mask.map((mask, i) => ({
      lossMask: led(mask as number[]),
      groupId: '',
      reward: 0,
      valuesOld: led(c.valuesOld[i] as number[]),
      returns: led(c.returns[i] as number[]),
    })),
    { valueClip: c.epsV },
  );

describe.each(readLosses<ValueCase>('value'))('$case', (c) => {
  test('loss, gradient and clip fraction', () => {
    const objective = objectiveOf(c);
    const { loss, gradients, metrics } = objective.evaluate(
      c.mask.map((_, i) => i),
      { values: atTargets(objective, c.values) },
    );
    expect(Math.abs(loss - c.ours.loss)).toBeLessThan(1e-6);
    expect(difference(toMatrix(objective, gradients.values!, c.mask), c.ours.gradValues)).toBeLessThan(1e-6);
    expect(summariseMetrics(metrics)['valueClipFraction']).toBeCloseTo(c.verl.clipFraction, 8);
  });

  test('micro-batches add up', () => {
    const objective = objectiveOf(c);
    const parts = [[4, 0], [2], [1, 3, 5]].map((part) =>
      objective.evaluate(part, { values: atTargets(objective, c.values, part) }),
    );
    expect(parts.reduce((sum, { loss }) => sum + loss, 0)).toBeCloseTo(c.ours.loss, 8);
  });
});

test('names what is missing', () => {
  const sequence = { lossMask: [0, 1], groupId: '', reward: 0, valuesOld: [0, 1] };
  expect(() => createValueObjective([sequence], { valueClip: 0.2 })).toThrow(
    'the value loss needs returns, got none',
  );
});
