// The model as a whole: its lanes, and the gradients that they gather.

import type { Parameter, TrainingModel } from '../training-model.js';
import type { LayeredLane } from './layered-lane.js';
import type { ParameterSet } from './parameters.js';
import type { Cancellation } from './stage-session.js';

export interface LayeredModelParts {
  /** Runs with all threads. */
  readonly alone: LayeredLane;
  /** The first one gathers in the same gradients as `alone`. */
  readonly lanes: readonly LayeredLane[];
  /** Of each lane, with the same values. */
  readonly parameters: readonly ParameterSet[];
  readonly cancel: Cancellation;
  close(): void;
}

export function createLayeredModel({ alone, lanes, parameters, ...parts }: LayeredModelParts): TrainingModel {
  const [own, ...others] = parameters.map(({ all }) => all) as [
    readonly Parameter[],
    ...(readonly Parameter[])[],
  ];
  return {
    parameters: own,
    lanes,
    score: (batch) => alone.score(batch),
    forward: (batch) => alone.forward(batch),
    backward: (gradients) => alone.backward(gradients),
    gatherGradients() {
      for (const all of others)
        for (const [i, { gradient }] of all.entries()) {
          const sum = (own[i] as Parameter).gradient;
          for (let at = 0; at < sum.length; at++) sum[at] = (sum[at] as number) + (gradient[at] as number);
          gradient.fill(0);
        }
    },
    clearGradients() {
      for (const { gradient } of [own, ...others].flat()) gradient.fill(0);
    },
    terminate: () => parts.cancel.request(),
    forgetTermination: () => parts.cancel.forget(),
    close: () => parts.close(),
  };
}
