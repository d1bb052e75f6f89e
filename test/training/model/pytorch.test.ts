import { readAdapter } from '../../../src/model/index.js';
import { openRuntime } from '../../../src/runtime/index.js';
import { openTrainingModel } from '../../../src/training/model/index.js';
import type { TrainingModelOptions } from '../../../src/training/model/open-training-model.js';
import type { TrainingModel } from '../../../src/training/training-model.js';
import { DECODERS, fixture, readJson } from '../../support/fixtures.js';
import { modelWeights } from '../../support/model-weights.js';
import {
  type Loss,
  microBatch,
  policyLoss,
  relativeDifference,
  type StoredBatch,
  sampled,
  tensors,
  valueLoss,
} from './support/oracle.js';

jest.setTimeout(120_000);

type Case = { readonly case: string; readonly loss: number; readonly lossFloat64?: number };

async function withModel(
  name: string,
  options: Pick<TrainingModelOptions, 'trainable'> & Partial<TrainingModelOptions>,
  use: (model: TrainingModel) => Promise<void>,
): Promise<void> {
  const runtime = await openRuntime();
  const model = await openTrainingModel({
    runtime,
    weights: modelWeights(name),
    precision: 'fp32',
    threads: 1,
    spinning: false,
    ...options,
  });
  try {
    await use(model);
  } finally {
    model.close();
  }
}

const adapterOf = (name: string, part: 'policy' | 'critic') =>
  readAdapter(fixture('lora', name, part), modelWeights(name).config);

function expectGradients(model: TrainingModel, name: string, loss: string): void {
  const stored = tensors('lora', name, 'gradients', `${loss}.safetensors`);
  const found = new Map(model.parameters.map(({ name: own, gradient }) => [own, gradient]));
  expect(stored.size).toBeGreaterThan(0);
  for (const [tensor, values] of stored) {
    const gradient = found.get(tensor);
    if (gradient === undefined)
      throw new Error(`no parameter ${tensor}; have ${[...found.keys()].join(', ')}`);
    expect({ tensor, off: relativeDifference(gradient, values) < 1e-4 }).toEqual({ tensor, off: true });
  }
}

describe.each(DECODERS)('%s gives what PyTorch gives', (name) => {
  const batch: StoredBatch = readJson('lora', name, 'batch.json');
  const cases: Case[] = readJson('lora', name, 'cases.json').cases;
  const lossOf = (name: string): number => {
    const { loss, lossFloat64 } = cases.find((item) => item.case === name)!;
    return lossFloat64 ?? loss;
  };
  const expectLoss = ({ loss, size }: Loss, name: string): void =>
    expect(Math.abs(loss - lossOf(name)) / size).toBeLessThan(1e-5);
  const policyCases = cases.map((item) => item.case).filter((item) => /^(sft|grpo\..*|ppo.*)$/.test(item));

  test('log-probabilities and gradients of the adapter', async () => {
    const adapter = adapterOf(name, 'policy');
    await withModel(name, { trainable: { kind: 'lora', adapter } }, async (model) => {
      expect(policyCases.length).toBe(6);
      for (const item of policyCases) {
        const { logprobs } = await model.forward(microBatch(batch.sequences));
        expect(
          relativeDifference(
            logprobs,
            sampled(batch.sequences, (sequence, at) => sequence.logp[at]!),
          ),
        ).toBeLessThan(1e-5);
        const loss = policyLoss(item, batch, logprobs);
        expectLoss(loss, item);
        model.clearGradients();
        await model.backward({ logprobs: loss.seeds });
        expectGradients(model, name, item);
      }
    });
  });

  test('values and gradients of the critic', async () => {
    const adapter = adapterOf(name, 'critic');
    const stored = tensors('lora', name, 'value-head.safetensors');
    const head = { kind: 'value', weight: stored.get('weight')!, bias: stored.get('bias')![0]! } as const;
    await withModel(name, { trainable: { kind: 'lora', adapter }, head }, async (model) => {
      for (const item of ['value', 'value.lambda']) {
        const { values } = await model.forward(microBatch(batch.sequences));
        expect(
          relativeDifference(
            values,
            sampled(batch.sequences, (sequence, at) => sequence.values[at]!),
          ),
        ).toBeLessThan(1e-5);
        const loss = valueLoss(item, batch, values);
        expectLoss(loss, item);
        model.clearGradients();
        await model.backward({ values: loss.seeds });
        expectGradients(model, name, item);
      }
    });
  });

  test('gradients of all weights', async () => {
    await withModel(name, { trainable: { kind: 'all' } }, async (model) => {
      const { logprobs } = await model.forward(microBatch(batch.sequences));
      const loss = policyLoss('sft-full', batch, logprobs);
      expectLoss(loss, 'sft-full');
      await model.backward({ logprobs: loss.seeds });
      expectGradients(model, name, 'sft-full');
    });
  });

  test('log-probabilities and entropies of the model alone', async () => {
    const { sequences } = readJson('forward', `${name}.json`);
    const trainable = { kind: 'lora', rank: 2, alpha: 4, seed: 1 } as const;
    await withModel(name, { trainable }, async (model) => {
      for (const { tokenIds, logprobs, entropy } of sequences) {
        const targets = tokenIds.slice(1).map((_: number, at: number) => at + 1);
        const scores = await model.score({ sequences: [{ tokenIds, targets }] });
        expect(relativeDifference(scores.logprobs, logprobs)).toBeLessThan(1e-5);
        expect(relativeDifference(scores.entropies, entropy.slice(0, targets.length))).toBeLessThan(1e-5);
      }
    });
  });
});
