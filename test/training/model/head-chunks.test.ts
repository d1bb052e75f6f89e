// More targets in one micro-batch than the output layer takes at once: scores and gradients are the sums over parts that
// it does take at once. Gradients are linear in what is given of each target.

import { readAdapter } from '../../../src/model/index.js';
import { openRuntime } from '../../../src/runtime/index.js';
import { openTrainingModel } from '../../../src/training/model/index.js';
import type { TrainingModelOptions } from '../../../src/training/model/open-training-model.js';
import type { ScoredSequence, ScoreGradients } from '../../../src/training/training-model.js';
import { fixture } from '../../support/fixtures.js';
import { modelWeights } from '../../support/model-weights.js';
import { relativeDifference, tensors } from './support/oracle.js';

jest.setTimeout(120_000);

const NAME = 'tiny-llama';
const weights = modelWeights(NAME);
const lora = {
  kind: 'lora',
  adapter: readAdapter(fixture('lora', NAME, 'policy'), weights.config),
} as const;

const LENGTH = 300;
/** Two long sequences, all of whose tokens count: 598 targets. */
const sequences: ScoredSequence[] = [3, 8].map((seed) => ({
  tokenIds: Array.from(
    { length: LENGTH },
    (_, t) => (seed * t * t + 5 * t + seed) % weights.config.vocabSize,
  ),
  targets: Array.from({ length: LENGTH - 1 }, (_, t) => t + 1),
}));
const PART = 150;
const parts: ScoredSequence[] = sequences.flatMap(({ tokenIds, targets }) =>
  [0, PART].map((first) => ({ tokenIds, targets: targets.slice(first, first + PART) })),
);

/** Another number for each target. */
const seedsOf = (count: number, phase: number): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(i + phase) / count);

type ScoreName = keyof ScoreGradients & ('logprobs' | 'entropies' | 'values');

async function compare(
  names: readonly ScoreName[],
  options: Pick<TrainingModelOptions, 'trainable'> & Partial<TrainingModelOptions>,
): Promise<void> {
  const runtime = await openRuntime();
  const model = await openTrainingModel({
    ...{ runtime, weights, precision: 'fp32', threads: 1, spinning: false },
    ...options,
  });
  const gradients = () => model.parameters.map(({ gradient }) => gradient.slice());
  const count = sequences.reduce((sum, { targets }) => sum + targets.length, 0);
  const seeds = Object.fromEntries(names.map((name, n) => [name, seedsOf(count, n)]));
  const whole = await model.forward({ sequences });
  await model.backward(seeds);
  const found = gradients();
  model.clearGradients();
  let first = 0;
  for (const part of parts) {
    const to = first + part.targets.length;
    const scores = await model.forward({ sequences: [part] });
    for (const name of names)
      expect(relativeDifference(whole[name].slice(first, to), scores[name])).toBeLessThan(1e-5);
    const given = names.map((name) => [name, seeds[name]?.slice(first, to)]);
    await model.backward(Object.fromEntries(given) as ScoreGradients);
    first = to;
  }
  expect(first).toBe(count);
  const expected = gradients();
  model.close();
  for (const [i, gradient] of found.entries())
    expect(relativeDifference(gradient, expected[i] as Float32Array)).toBeLessThan(1e-4);
}

test.each([
  ['all layers kept', {}],
  ['all layers computed again', { activationBytes: 0 }],
])('log-probabilities alone, %s', (_, options) => compare(['logprobs'], { trainable: lora, ...options }));

test.each([
  ['all layers kept', {}],
  ['all layers computed again', { activationBytes: 0 }],
])('entropies too, %s', (_, options) => compare(['logprobs', 'entropies'], { trainable: lora, ...options }));

test('values', () => {
  const stored = tensors('lora', NAME, 'value-head.safetensors');
  const head = { kind: 'value', weight: stored.get('weight')!, bias: stored.get('bias')![0]! } as const;
  const adapter = readAdapter(fixture('lora', NAME, 'critic'), weights.config);
  return compare(['values'], { trainable: { kind: 'lora', adapter }, head });
});

test('all weights', () => compare(['logprobs', 'entropies'], { trainable: { kind: 'all' } }));
