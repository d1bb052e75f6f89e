import { CancelledError, InvalidInputError, NonFiniteError } from '../../../src/errors.js';
import { LARGEST_ADAPTER_WEIGHT, quantisedValues, readAdapter } from '../../../src/model/index.js';
import { openRuntime } from '../../../src/runtime/index.js';
import { openTrainingModel } from '../../../src/training/model/index.js';
import type { TrainingModelOptions } from '../../../src/training/model/open-training-model.js';
import type { MicroBatch, TrainingModel } from '../../../src/training/training-model.js';
import { fixture, readJson } from '../../support/fixtures.js';
import { modelWeights } from '../../support/model-weights.js';
import { microBatch, policyLoss, relativeDifference, type StoredBatch } from './support/oracle.js';

jest.setTimeout(120_000);

const NAME = 'tiny-llama';
const stored: StoredBatch = readJson('lora', NAME, 'batch.json');
const weights = modelWeights(NAME);

const opened: TrainingModel[] = [];

afterEach(() => {
  for (const model of opened.splice(0)) model.close();
});

async function open(options: Partial<TrainingModelOptions> = {}): Promise<TrainingModel> {
  const model = await openTrainingModel({
    runtime: await openRuntime(),
    weights,
    precision: 'fp32',
    threads: 1,
    spinning: false,
    trainable: { kind: 'lora', adapter: readAdapter(fixture('lora', NAME, 'policy'), weights.config) },
    ...options,
  });
  opened.push(model);
  return model;
}

const copied = (model: TrainingModel): Float32Array[] =>
  model.parameters.map(({ gradient }) => gradient.slice());

/** Gradients of the mean log-probability of all targets. */
async function gradientsOf(model: TrainingModel, batch: MicroBatch): Promise<Float32Array[]> {
  model.clearGradients();
  const { logprobs } = await model.forward(batch);
  await model.backward({ logprobs: logprobs.map(() => 1 / logprobs.length) });
  return copied(model);
}

/** Tokens without meaning, the same for the same seed. */
function tokens(count: number, seed: number): number[] {
  let state = seed;
  return Array.from({ length: count }, () => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return state % weights.config.vocabSize;
  });
}

const everyThird = (count: number): number[] =>
  Array.from({ length: count - 1 }, (_, at) => at + 1).filter((at) => at % 3 === 0 || at === count - 1);

test('a batch in parts has the gradient of the whole', async () => {
  const model = await open();
  const whole = microBatch(stored.sequences);
  const { logprobs } = await model.forward(whole);
  const { seeds } = policyLoss('grpo.token-mean', stored, logprobs);
  await model.backward({ logprobs: seeds });
  const expected = copied(model);
  model.clearGradients();
  let first = 0;
  for (const part of [whole.sequences.slice(0, 1), whole.sequences.slice(1, 4), whole.sequences.slice(4)]) {
    const scores = await model.forward({ sequences: part });
    const count = scores.logprobs.length;
    expect(relativeDifference(scores.logprobs, logprobs.subarray(first, first + count))).toBeLessThan(1e-6);
    await model.backward({ logprobs: seeds.slice(first, first + count) });
    first += count;
  }
  expect(first).toBe(logprobs.length);
  for (const [index, gradient] of copied(model).entries())
    expect(relativeDifference(gradient, expected[index]!)).toBeLessThan(1e-5);
});

test('layers that are computed again give the bits of those that were kept', async () => {
  const batch = microBatch(stored.sequences);
  const kept = await gradientsOf(await open(), batch);
  const again = await gradientsOf(await open({ activationBytes: 0 }), batch);
  expect(again).toEqual(kept);
});

test('a token that is no target and stands before none changes nothing', async () => {
  const model = await open();
  const [a, b] = [tokens(20, 1), tokens(14, 2)];
  const batch = (last: number): MicroBatch => ({
    sequences: [
      { tokenIds: [...a, last, last + 1], targets: [3, 9, 19] },
      { tokenIds: [...b, last], targets: [5, 13] },
    ],
  });
  const first = await gradientsOf(model, batch(7));
  expect(await gradientsOf(model, batch(200))).toEqual(first);
});

test('sequences of a batch do not see each other', async () => {
  const model = await open();
  const sequence = (seed: number) => ({ tokenIds: tokens(30, seed), targets: [4, 11, 29] });
  const { logprobs } = await model.score({ sequences: [sequence(1), sequence(2)] });
  const other = await model.score({ sequences: [sequence(3), sequence(2)] });
  expect(other.logprobs.slice(3)).toEqual(logprobs.slice(3));
  const alone = await model.score({ sequences: [sequence(2)] });
  expect(relativeDifference(alone.logprobs, logprobs.slice(3))).toBeLessThan(1e-6);
});

describe('a sequence longer than a block of attention', () => {
  const length = 300;
  const tokenIds = tokens(length, 5);
  const targets = everyThird(length);

  test('is scored as its beginnings are', async () => {
    const model = await open();
    const { logprobs, entropies } = await model.score({ sequences: [{ tokenIds, targets }] });
    for (const end of [40, 128]) {
      const some = targets.filter((target) => target < end);
      const part = await model.score({ sequences: [{ tokenIds: tokenIds.slice(0, end), targets: some }] });
      expect(relativeDifference(part.logprobs, logprobs.slice(0, some.length))).toBeLessThan(1e-5);
      expect(relativeDifference(part.entropies, entropies.slice(0, some.length))).toBeLessThan(1e-5);
    }
  });

  test.each(['logprobs', 'entropies'] as const)(
    'has the gradient of central differences: %s',
    async (score) => {
      const model = await open();
      const batch = { sequences: [{ tokenIds, targets }] };
      const scores = await model.forward(batch);
      await model.backward({ [score]: scores[score].map(() => 1 / targets.length) });
      const gradients = copied(model);
      const mean = async (): Promise<number> => {
        const values = (await model.score(batch))[score];
        return values.reduce((sum, value) => sum + value, 0) / values.length;
      };
      // Along the gradient itself, a few parameters at a time, so that errors of float32 stay small beside the slope.
      for (const part of [
        'layers.0.self_attn.k_proj',
        'layers.0.self_attn.v_proj',
        'layers.1.self_attn.q_proj',
        'layers.0.mlp',
      ]) {
        const chosen = model.parameters.flatMap(({ name, values }, index) =>
          name.includes(part) ? [{ values, start: values.slice(), gradient: gradients[index]! }] : [],
        );
        const slope = Math.sqrt(
          chosen.reduce(
            (sum, { gradient }) => sum + gradient.reduce((part, value) => part + value * value, 0),
            0,
          ),
        );
        const moved = async (step: number): Promise<number> => {
          for (const { values, start, gradient } of chosen)
            for (let at = 0; at < values.length; at++)
              values[at] = start[at]! + (step * gradient[at]!) / slope;
          return mean();
        };
        const step = 0.02;
        const difference = ((await moved(step)) - (await moved(-step))) / (2 * step);
        await moved(0);
        expect(Math.abs(difference / slope - 1)).toBeLessThan(0.01);
      }
    },
  );
});

test('gradients of both scores add up', async () => {
  const model = await open();
  const batch = microBatch(stored.sequences);
  const run = async (logprobs: number, entropies: number): Promise<Float32Array[]> => {
    model.clearGradients();
    const scores = await model.forward(batch);
    const fill = (value: number) => scores.logprobs.map(() => value);
    await model.backward({
      ...(logprobs !== 0 && { logprobs: fill(logprobs) }),
      ...(entropies !== 0 && { entropies: fill(entropies) }),
    });
    return copied(model);
  };
  const [first, second, both] = [await run(1, 0), await run(0, 0.5), await run(1, 0.5)];
  for (const [index, gradient] of both.entries()) {
    const sum = gradient.map((_, at) => first[index]![at]! + second[index]![at]!);
    expect(relativeDifference(gradient, sum)).toBeLessThan(1e-5);
  }
});

test.each(['q8', 'q4'] as const)('%s trains on the values that its blocks stand for', async (precision) => {
  const batch = microBatch(stored.sequences);
  const blocks = await open({ precision });
  const values = await open({ weights: quantisedValues(weights, precision), precision: 'fp32' });
  const found = await blocks.score(batch);
  expect(found).toEqual(await values.score(batch));
  expect(found.logprobs).not.toEqual((await (await open()).score(batch)).logprobs);
});

test('without the C API the fallback gives the same, in place too', async () => {
  const batch = microBatch(stored.sequences);
  const native = await gradientsOf(await open(), batch);
  const model = await open({ runtime: await openRuntime('binding') });
  const fallback = await gradientsOf(model, batch);
  for (const [index, gradient] of fallback.entries())
    expect(relativeDifference(gradient, native[index]!)).toBeLessThan(1e-5);
});

describe('where an adapter begins', () => {
  const fresh = { kind: 'lora', rank: 3, alpha: 6, seed: 11 } as const;

  test('its values have the limits of the engine, with the scale in those of B', async () => {
    const { parameters } = await open({ trainable: fresh });
    for (const { name, largest } of parameters)
      expect(largest).toBe(name.includes('lora_B') ? LARGEST_ADAPTER_WEIGHT / 2 : LARGEST_ADAPTER_WEIGHT);
  });

  test('as PEFT does: A within its bound, B zero, so nothing is changed yet', async () => {
    const model = await open({ trainable: fresh });
    expect(model.parameters.slice(0, 2).map(({ name, shape }) => [name, shape])).toEqual([
      ['base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight', [3, 64]],
      ['base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight', [64, 3]],
    ]);
    expect(model.parameters.length).toBe(weights.config.layers * 7 * 2);
    for (const { name, shape, values } of model.parameters) {
      const largest = Math.max(...values.map(Math.abs));
      if (name.includes('lora_B')) expect(largest).toBe(0);
      else {
        expect(largest).toBeLessThanOrEqual(1 / Math.sqrt(shape[1]!));
        expect(largest).toBeGreaterThan(0.8 / Math.sqrt(shape[1]!));
      }
    }
    const { sequences } = readJson('forward', `${NAME}.json`);
    const { tokenIds, logprobs } = sequences[1];
    const targets = logprobs.map((_: number, at: number) => at + 1);
    const scores = await model.score({ sequences: [{ tokenIds, targets }] });
    expect(relativeDifference(scores.logprobs, logprobs)).toBeLessThan(1e-5);
  });

  test('the seed decides', async () => {
    const values = async (seed: number) =>
      (await open({ trainable: { ...fresh, seed } })).parameters[0]!.values;
    expect(await values(11)).toEqual(await values(11));
    expect(await values(12)).not.toEqual(await values(11));
  });

  test('some modules only: what is below the first of them needs no gradient', async () => {
    const model = await open({ trainable: { ...fresh, modules: ['o', 'down'] } });
    expect(model.parameters.length).toBe(weights.config.layers * 4);
    const gradients = await gradientsOf(model, microBatch(stored.sequences));
    const ofA = gradients.filter((_, index) => model.parameters[index]!.name.includes('lora_A'));
    const ofB = gradients.filter((_, index) => model.parameters[index]!.name.includes('lora_B'));
    // B is zero, so A has no slope yet.
    expect(ofA.every((gradient) => gradient.every((value) => value === 0))).toBe(true);
    expect(ofB.every((gradient) => gradient.some((value) => value !== 0))).toBe(true);
  });
});

test('values that are written in place count from the next run on', async () => {
  const model = await open();
  const batch = microBatch(stored.sequences);
  const before = (await model.score(batch)).logprobs;
  const { values } = model.parameters[1]!;
  const start = values.slice();
  values.fill(0);
  expect((await model.score(batch)).logprobs).not.toEqual(before);
  values.set(start);
  expect((await model.score(batch)).logprobs).toEqual(before);
});

test('a batch without targets has no scores and adds nothing', async () => {
  const model = await open();
  const batch = { sequences: [{ tokenIds: [1, 2, 3], targets: [] }] };
  expect((await model.forward(batch)).logprobs.length).toBe(0);
  await model.backward({ logprobs: new Float32Array(0) });
  expect(copied(model).every((gradient) => gradient.every((value) => value === 0))).toBe(true);
  const mixed = { sequences: [...batch.sequences, { tokenIds: [4, 5, 6], targets: [2] }] };
  expect((await model.score(mixed)).logprobs.length).toBe(1);
});

describe('what is refused', () => {
  test.each([
    [
      'a target at the first token',
      { tokenIds: [1, 2], targets: [0] },
      'target 0 must be above 0 and below 2',
    ],
    ['a target past the end', { tokenIds: [1, 2], targets: [2] }, 'target 2 must be above 0 and below 2'],
    ['targets out of order', { tokenIds: [1, 2, 3], targets: [2, 1] }, 'target 1 must be above 2'],
    [
      'a token outside the vocabulary',
      { tokenIds: [1, 512], targets: [1] },
      'token 1 is 512, the vocabulary has 512',
    ],
  ])('%s', async (_, sequence, message) => {
    const model = await open();
    await expect(model.score({ sequences: [sequence] })).rejects.toThrow(message);
    await expect(model.score({ sequences: [sequence] })).rejects.toThrow(InvalidInputError);
  });

  test('a backward run without a forward run, twice, or with other lengths', async () => {
    const model = await open();
    await expect(model.backward({})).rejects.toThrow('needs a batch that was forwarded');
    await model.forward(microBatch(stored.sequences));
    await expect(model.backward({ logprobs: new Float32Array(1) })).rejects.toThrow('1 gradients for');
    await model.backward({});
    await expect(model.backward({})).rejects.toThrow('needs a batch that was forwarded');
  });

  test('numbers that are not finite', async () => {
    const model = await open();
    const batch = microBatch(stored.sequences);
    const { logprobs } = await model.forward(batch);
    const failing = model.backward({ logprobs: logprobs.map(() => Number.NaN) });
    await expect(failing).rejects.toThrow(NonFiniteError);
    await expect(failing).rejects.toThrow(
      'gradient of base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight is NaN',
    );
    model.parameters[1]!.values[0] = Number.POSITIVE_INFINITY;
    await expect(model.score(batch)).rejects.toThrow(/logprobs: sequence 0, token \d+ is NaN/);
  });
});

describe('terminate', () => {
  test('ends a run; the model goes on with the next', async () => {
    const model = await open();
    const batch = microBatch(stored.sequences);
    const running = model.forward(batch);
    setImmediate(() => model.terminate());
    await expect(running).rejects.toThrow(CancelledError);
    await expect(model.backward({})).rejects.toThrow('needs a batch that was forwarded');
    expect((await model.score(batch)).logprobs.length).toBeGreaterThan(0);
  });
});
