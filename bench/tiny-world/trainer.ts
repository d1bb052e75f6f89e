// The trainer of the tiny world, in float32: what it trains is what the engine computes with.

import type { RunFolder } from '#searchloop/loop/index.js';
import type { StoredModel } from '#searchloop/model/index.js';
import { openTrainer, type RunSettings, type Trainer } from '#searchloop/training/index.js';

export interface TinyTrainerParts {
  readonly home: string;
  readonly model: StoredModel;
  readonly threads: number;
}

const ACTIVATION_BYTES = 2 ** 30;

/** Where the run ended, or at its start. */
export function openTinyTrainer(
  run: RunFolder,
  settings: RunSettings,
  { home, model, threads }: TinyTrainerParts,
): Promise<Trainer> {
  const { trained, rank, alpha, seed, usesCritic, lanes } = settings;
  return openTrainer({
    entry: 'training/trainer/decoder-task',
    spec: {
      home,
      modelId: model.record.id,
      precision: 'fp32',
      trained,
      rank,
      alpha,
      seed,
      adapter: null,
      critic: usesCritic,
      threads,
      lanes,
      activationBytes: ACTIVATION_BYTES,
    },
    root: run.checkpoints,
    configDigest: run.configDigest,
    from: run.from,
  });
}
