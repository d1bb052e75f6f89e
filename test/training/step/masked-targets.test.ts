// The mask in the graph: at a masked position in the middle of a sequence only the target changes, the inputs stay. Two ids
// of one embedding and different rows of the head are the same as inputs and differ as targets.

import { type DecoderWeights, readAdapter } from '../../../src/model/index.js';
import { openRuntime } from '../../../src/runtime/index.js';
import { createPolicyObjective } from '../../../src/training/algorithms/policy-objective.js';
import { algorithmSettings } from '../../../src/training/algorithms/registry.js';
import type { AlgorithmSettings } from '../../../src/training/algorithms/settings.js';
import { openTrainingModel } from '../../../src/training/model/open-training-model.js';
import { accumulateGradients } from '../../../src/training/step/accumulate.js';
import type { TrainingModel } from '../../../src/training/training-model.js';
import { fixture } from '../../support/fixtures.js';
import { modelWeights } from '../../support/model-weights.js';

jest.setTimeout(120_000);

const NAME = 'tiny-llama';
const [ID, TWIN] = [17, 301];
const LENGTH = 18;
/** Masked, between sampled tokens; and a sampled one. */
const [MASKED, SAMPLED] = [9, 13];
const environmentMask = Array.from({ length: LENGTH }, (_, t) => (t >= 8 && t < 11 ? 1 : 0));
const lossMask = environmentMask.map((retrieved, t) => (t >= 4 && retrieved === 0 ? 1 : 0));

function weightsWithTwins(): DecoderWeights {
  const weights = modelWeights(NAME);
  const { hiddenSize, tiedHead } = weights.config;
  expect(tiedHead).toBe(false);
  return {
    config: weights.config,
    layer: (layer, part) => weights.layer(layer, part),
    part(part) {
      const values = weights.part(part);
      if (part !== 'embedding') return values;
      const copy = values.slice();
      copy.copyWithin(TWIN * hiddenSize, ID * hiddenSize, (ID + 1) * hiddenSize);
      return copy;
    },
  };
}

let model: TrainingModel;
beforeAll(async () => {
  const weights = weightsWithTwins();
  model = await openTrainingModelOf(weights);
});
afterAll(() => model.close());

async function openTrainingModelOf(weights: DecoderWeights): Promise<TrainingModel> {
  return openTrainingModel({
    runtime: await openRuntime(),
    weights,
    precision: 'fp32',
    threads: 1,
    spinning: false,
    trainable: { kind: 'lora', adapter: readAdapter(fixture('lora', NAME, 'policy'), weights.config) },
  });
}

/** Everything that a batch gives, with the twin as the token at one place. */
async function outcome(settings: Partial<AlgorithmSettings>, twinAt: number | null) {
  const tokenIds = Array.from({ length: LENGTH }, (_, t) =>
    t === twinAt ? TWIN : t === MASKED || t === SAMPLED ? ID : (53 * t + 7) % 500,
  );
  const perToken = (value: (t: number) => number) =>
    Float64Array.from({ length: LENGTH }, (_, t) => value(t));
  const objective = createPolicyObjective(
    [
      {
        lossMask,
        environmentMask,
        groupId: 'g',
        reward: 1,
        advantages: perToken((t) => Math.sin(t)),
        logprobsOld: perToken((t) => -6 - 0.1 * Math.cos(t)),
        logprobsRef: perToken((t) => -6 + 0.1 * Math.sin(t)),
        logprobsEngine: perToken((t) => -6 + 0.05 * Math.cos(t)),
      },
    ],
    algorithmSettings('grpo', { klBeta: 0.1, entropyBonus: 0.01, ...settings }),
  );
  const { loss, metrics } = await accumulateGradients(model, [tokenIds], objective, {
    microBatchTokens: 64,
    throwIfCancelled: () => {},
  });
  return { loss, metrics, gradients: model.parameters.map(({ gradient }) => gradient.slice()) };
}

test('another target at a masked position: loss, gradients and metrics are the same to the bit', async () => {
  const plain = await outcome({}, null);
  expect(plain.gradients.some((gradient) => gradient.some((value) => value !== 0))).toBe(true);
  expect(await outcome({}, MASKED)).toEqual(plain);
});

test('the twin is another target: where the token counts, the outcome differs', async () => {
  const plain = await outcome({}, null);
  expect((await outcome({}, SAMPLED)).loss).not.toBe(plain.loss);
  // echo is the opposite of the mask.
  const echoed = await outcome({ echoWeight: 0.05 }, null);
  expect((await outcome({ echoWeight: 0.05 }, MASKED)).loss).not.toBe(echoed.loss);
});
