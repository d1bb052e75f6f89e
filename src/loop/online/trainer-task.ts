// The pool's entry for the loop's trainer: as the one for decoders, but it stands still between two micro-batches while
// users ask.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type DecoderSpec,
  openDecoder,
  type Trainable,
  type TrainedPart,
  type TrainingLane,
  trainerTask,
} from '../../training/index.js';

export interface PausableSpec extends DecoderSpec {
  /** One cell: 1 while no micro-batch may start. */
  readonly pause: Int32Array;
}

const LOOK_MS = 5;

async function openPausable(spec: PausableSpec): Promise<Trainable> {
  const trainable = await openDecoder(spec);
  return {
    policy: pausable(trainable.policy, spec.pause),
    critic: trainable.critic === null ? null : pausable(trainable.critic, spec.pause),
    versionOf: (folder) => trainable.versionOf(folder),
    close: () => trainable.close(),
  };
}

/** A part of which no micro-batch begins, forward, while the cell is 1. */
export function pausable(part: TrainedPart, pause: Int32Array): TrainedPart {
  const { model } = part;
  const clear = async (): Promise<void> => {
    while (Atomics.load(pause, 0) === 1) await sleep(LOOK_MS);
  };
  const waiting = (lane: TrainingLane): TrainingLane => ({
    score: async (batch) => {
      await clear();
      return lane.score(batch);
    },
    forward: async (batch) => {
      await clear();
      return lane.forward(batch);
    },
    // Its forward run is done: the rest of the micro-batch goes on at the lowest priority.
    backward: (gradients) => lane.backward(gradients),
  });
  return { ...part, model: { ...model, ...waiting(model), lanes: model.lanes.map(waiting) } };
}

export default trainerTask(openPausable);
