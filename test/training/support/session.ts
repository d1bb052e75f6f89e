// A trainer's session over the bigram model, in this thread.

import { join } from 'node:path';
import type { StepControl } from '../../../src/training/step/accumulate.js';
import { TrainerSession } from '../../../src/training/trainer/session.js';
import type { OpenTrainable } from '../../../src/training/trainer/trainable.js';
import type { TrainingModel } from '../../../src/training/training-model.js';
import { bigramModel } from './bigram-model.js';

export const VOCAB = 6;

export const controlOf = (microBatchTokens: number): StepControl => ({
  microBatchTokens,
  throwIfCancelled: () => {},
});

export interface SessionOptions {
  readonly critic?: boolean;
  /** The policy's values are spoiled before its forward pass of this number, from 0. */
  readonly poison?: { readonly after: number };
}

let made = 0;

/** Begins a session below a folder and commits its start values. */
export async function beginSession(folder: string, options: SessionOptions = {}) {
  const root = join(folder, `run-${made++}`);
  let seen = 0;
  const policy = (): TrainingModel =>
    bigramModel({
      vocabSize: VOCAB,
      kind: 'policy',
      seed: 2,
      interfere: ({ parameters }) => {
        if (seen++ === options.poison?.after)
          (parameters[0] as { values: Float32Array }).values[8] = Number.NaN;
      },
    });
  const critic = (): TrainingModel => bigramModel({ vocabSize: VOCAB, kind: 'value', seed: 4 });
  const opened: Record<'policy' | 'critic', TrainingModel | null>[] = [];
  const open: OpenTrainable<null> = async () => {
    const models = { policy: policy(), critic: options.critic ? critic() : null };
    opened.push(models);
    return {
      policy: { model: models.policy, form: { kind: 'whole' } },
      critic: models.critic === null ? null : { model: models.critic, form: { kind: 'whole' } },
      versionOf: async () => 'v0',
      close: () => {},
    };
  };
  const session = await TrainerSession.begin(open, null);
  const start = await session.commit(root, '0'.repeat(64));
  /** What the session's policy, or critic, holds now. */
  const valuesOf = (part: 'policy' | 'critic'): Float32Array =>
    Float32Array.from(opened[0]?.[part]?.parameters[0]?.values ?? []);
  return { session, start, root, open, valuesOf };
}
