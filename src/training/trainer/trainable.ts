// What a trainer trains, as the pool's entry opens it.

import type { TrainedForm } from '../checkpoint/trained-files.js';
import type { TrainingModel } from '../training-model.js';

export interface TrainedPart {
  readonly model: TrainingModel;
  readonly form: TrainedForm;
}

export interface Trainable {
  readonly policy: TrainedPart;
  /** A value model; null where the algorithm needs none. */
  readonly critic: TrainedPart | null;
  /** Name of the policy version in a checkpoint folder, as an engine that loads the folder calls it. */
  versionOf(folder: string): Promise<string>;
  close(): void;
}

/** Opens what a run trains, with its start values. The same spec gives the same values. */
export type OpenTrainable<Spec> = (spec: Spec) => Promise<Trainable>;
