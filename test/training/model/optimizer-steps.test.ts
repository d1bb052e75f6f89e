// Three optimizer steps over the same batch, model and AdamW together, against PyTorch with PEFT.

import { readAdapter } from '../../../src/model/index.js';
import { openRuntime } from '../../../src/runtime/index.js';
import { openTrainingModel } from '../../../src/training/model/index.js';
import { AdamW } from '../../../src/training/optimizers/index.js';
import type { TrainingModel } from '../../../src/training/training-model.js';
import { DECODERS, fixture, readJson } from '../../support/fixtures.js';
import { modelWeights } from '../../support/model-weights.js';
import { microBatch, policyLoss, type StoredBatch, tensors } from './support/oracle.js';

jest.setTimeout(120_000);

interface StoredRun {
  readonly case: string;
  readonly weightDecay: number;
  readonly steps: readonly { readonly loss: number; readonly gradNormBeforeClip: number }[];
}

const RUNS = (['sft', 'grpo.seq-mean-token-mean'] as const).flatMap((loss) =>
  [0, 0.01].map((weightDecay) => [loss, weightDecay] as const),
);

/** Entries whose gradient is near 0 may move by the learning rate either way: so many may be off. */
const MOST_OFF = 0.002;

function expectParameters(model: TrainingModel, name: string, file: string): void {
  const stored = tensors('lora', name, 'adamw', `${file}.safetensors`);
  let [entries, off] = [0, 0];
  for (const { name: tensor, values } of model.parameters) {
    const theirs = stored.get(tensor);
    if (theirs?.length !== values.length)
      throw new Error(`${file}: no ${tensor} of ${values.length} entries`);
    entries += values.length;
    off += values.reduce((sum, value, i) => sum + Number(!(Math.abs(value - theirs[i]!) <= 2e-5)), 0);
  }
  expect(entries).toBeGreaterThan(5000);
  expect({ file, share: off / entries <= MOST_OFF ? 0 : off / entries }).toEqual({ file, share: 0 });
}

test.each(DECODERS)('%s: losses, norms and parameters of three steps', async (name) => {
  const batch: StoredBatch = readJson('lora', name, 'batch.json');
  const { adamw } = readJson('lora', name, 'cases.json') as {
    adamw: { lr: number; maxNorm: number; runs: StoredRun[] };
  };
  const weights = modelWeights(name);
  const model = await openTrainingModel({
    runtime: await openRuntime(),
    weights,
    precision: 'fp32',
    threads: 1,
    spinning: false,
    trainable: { kind: 'lora', adapter: readAdapter(fixture('lora', name, 'policy'), weights.config) },
  });
  const start = model.parameters.map(({ values }) => values.slice());
  for (const [loss, weightDecay] of RUNS) {
    for (const [p, { values }] of model.parameters.entries()) values.set(start[p]!);
    const stored = adamw.runs.find((run) => run.case === loss && run.weightDecay === weightDecay)!;
    expect(stored.steps).toHaveLength(3);
    const optimizer = new AdamW(model.parameters);
    for (const [at, step] of stored.steps.entries()) {
      const { logprobs } = await model.forward(microBatch(batch.sequences));
      const found = policyLoss(loss, batch, logprobs);
      expect(Math.abs(found.loss - step.loss) / found.size).toBeLessThan(1e-5);
      model.clearGradients();
      await model.backward({ logprobs: found.seeds });
      const { gradientNorm } = optimizer.update({
        learningRate: adamw.lr,
        weightDecay,
        maxGradientNorm: adamw.maxNorm,
      });
      expect(Math.abs(gradientNorm / step.gradNormBeforeClip - 1)).toBeLessThan(1e-4);
      if (at !== 1) expectParameters(model, name, `${loss}.wd${weightDecay}.step${at + 1}`);
    }
  }
  model.close();
});
