// The critic's objective: the value loss over an optimizer batch.

import { InvalidInputError } from '../../errors.js';
import { layoutOf, offsetsOf, scoresAt } from './batch-layout.js';
import { valueLoss } from './losses/value-loss.js';
import { pick } from './masked.js';
import { MetricBuilder } from './metrics.js';
import type { CurrentScores, Evaluation, Objective, ObjectiveSequence } from './objective.js';
import type { AlgorithmSettings } from './settings.js';

/**
 * @param sequences  with `valuesOld` and `returns`
 * @throws {InvalidInputError} one of these is missing, has another length than the mask, or is not finite under it
 */
export function createValueObjective(
  sequences: readonly ObjectiveSequence[],
  settings: Pick<AlgorithmSettings, 'valueClip'>,
): Objective {
  const layouts = sequences.map((sequence) => layoutOf(sequence, false));
  const fixed = layouts.map(({ sampled, length }, s) => ({
    valuesOld: pick(needed(sequences[s]!.valuesOld, 'valuesOld'), sampled, length, 'valuesOld'),
    returns: pick(needed(sequences[s]!.returns, 'returns'), sampled, length, 'returns'),
  }));
  const tokens = layouts.reduce((total, layout) => total + layout.sampled.length, 0);

  function evaluate(part: readonly number[], scores: Partial<CurrentScores>): Evaluation {
    const current = needed(scores.values, 'values');
    const gradients = new Float64Array(current.length);
    const metrics = new MetricBuilder();
    let loss = 0;
    const offsets = offsetsOf(layouts, part, current, 'values');
    part.forEach((s, p) => {
      const { targets, sampledSlots } = layouts[s]!;
      const values = scoresAt(current, offsets[p]!, sampledSlots, { name: 'value', sequence: s, targets });
      const { valuesOld, returns } = fixed[s]!;
      const output = valueLoss(values, valuesOld, returns, settings.valueClip);
      values.forEach((value, i) => {
        loss += output.losses[i]! / tokens;
        gradients[offsets[p]! + i] = output.gradients[i]! / tokens;
        metrics.observe('valueMean', value);
        metrics.observe('returnMean', returns[i]!);
        metrics.observe('valueSquaredError', (value - returns[i]!) ** 2);
      });
      metrics.observe('valueClipFraction', output.clipped, values.length);
    });
    metrics.add('valueLoss', loss);
    return {
      loss,
      gradients: { logprobs: null, entropies: null, values: gradients },
      metrics: metrics.build(),
    };
  }

  return {
    kind: 'value',
    targets: layouts.map((layout) => layout.targets),
    empty: tokens === 0,
    needsBatchLogprobs: false,
    prepare: () => {},
    evaluate,
  };
}

function needed(values: ArrayLike<number> | undefined, name: string): ArrayLike<number> {
  if (values === undefined) throw new InvalidInputError(`the value loss needs ${name}, got none`, name);
  return values;
}
