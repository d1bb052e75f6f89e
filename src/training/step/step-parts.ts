// What a step works on, and what it gives.

import type { AdamW } from '../optimizers/index.js';
import type { TrainedPart } from '../trainer/trainable.js';

export interface StepPart extends TrainedPart {
  readonly optimizer: AdamW;
}

export interface StepParts {
  readonly policy: StepPart;
  readonly critic: StepPart | null;
}

export interface StepOutcome {
  /** Figures by name. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Tokens that went through a model, there and back or forward only. */
  readonly tokens: number;
}
