// Blocks of 8 and 4 bits. Two effects part a quantised graph from float32: weights that moved to the grid of their
// block, and activations that are rounded to int8 in every product. The second alone is what the graph itself adds.

import {
  type DecoderConfig,
  type DecoderWeights,
  type GraphPrecision,
  type LinearModule,
  linearShape,
  quantisedValues,
} from '../../src/model/index.js';
import { DECODERS, readJson } from '../support/fixtures.js';
import { modelWeights } from '../support/model-weights.js';
import { argMax, buildGraphs, maxDifference, storedRows } from './support/fixtures.js';
import { openSteps } from './support/step-runner.js';

interface Forward {
  readonly logits: readonly Float32Array[];
  /** Of the tokens that follow. */
  readonly logprobs: readonly number[];
}

const sequencesOf = (name: string): number[][] =>
  readJson('forward', `${name}.json`).sequences.map((item: { tokenIds: number[] }) => item.tokenIds);

/** All stored sequences of a model through one graph. */
async function forward(name: string, weights: DecoderWeights, precision: GraphPrecision): Promise<Forward> {
  const steps = await openSteps(await buildGraphs(weights, precision));
  const logits: Float32Array[] = [];
  const logprobs: number[] = [];
  for (const ids of sequencesOf(name)) {
    steps.reset();
    const result = await steps.step([ids]);
    logits.push(...result.logits);
    ids.slice(1).forEach((id, at) => {
      logprobs.push(result.logits[at]![id]! - result.logsumexp[at]!);
    });
  }
  steps.close();
  return { logits, logprobs };
}

function meanAndMax(differences: readonly number[]): { mean: number; max: number } {
  const sizes = differences.map(Math.abs);
  return { mean: sizes.reduce((sum, size) => sum + size, 0) / sizes.length, max: Math.max(...sizes) };
}

describe.each([...DECODERS])('%s', (name) => {
  const weights = modelWeights(name);

  test('q8 lies as near to float32 as llama.cpp does with 8 bits', async () => {
    const { logits, logprobs } = await forward(name, weights, 'q8');
    const stored = storedRows('forward', `${name}.safetensors`);
    const exact = sequencesOf(name).flatMap((_, index) => stored(`logits.${index}`));
    const exactLogprobs: number[] = readJson('forward', `${name}.json`).sequences.flatMap(
      (item: { logprobs: number[] }) => item.logprobs,
    );
    const { mean, max } = meanAndMax(logprobs.map((value, at) => value - exactLogprobs[at]!));
    // llama.cpp on a real model: 0.06 on average, 0.39 at most, the same greedy id at 95 % of the positions.
    expect(mean).toBeLessThan(0.06);
    expect(max).toBeLessThan(0.4);
    const agreeing = logits.filter((row, at) => argMax(row) === argMax(exact[at]!)).length;
    expect(agreeing / logits.length).toBeGreaterThan(0.9);
    // And it is not float32 in disguise.
    expect(mean).toBeGreaterThan(1e-3);
  });

  test.each(['q8', 'q4'] as const)(
    '%s adds only the rounding of activations to its dequantised weights',
    async (precision) => {
      const quantised = await forward(name, weights, precision);
      const reference = await forward(name, quantisedValues(weights, precision), 'fp32');
      const { mean, max } = meanAndMax(
        quantised.logprobs.map((value, at) => value - reference.logprobs[at]!),
      );
      // Rounding 32 values to 1/127 of their largest moves each by about 0.3 % of its size; through two layers and the
      // head that is some hundredths of a nat. A block that is misread moves log-probabilities by whole nats.
      expect(mean).toBeLessThan(0.06);
      expect(max).toBeLessThan(0.4);
    },
  );
});

test('q4 is smaller than q8', async () => {
  const [q8, q4] = [
    await buildGraphs(modelWeights('tiny-qwen3'), 'q8'),
    await buildGraphs(modelWeights('tiny-qwen3'), 'q4'),
  ];
  expect(q4.weightsByteLength).toBeLessThan(q8.weightsByteLength);
  expect(q4.digest).not.toBe(q8.digest);
});

describe('widths that do not fill whole blocks', () => {
  const config: DecoderConfig = {
    ...modelWeights('tiny-llama').config,
    hiddenSize: 40,
    intermediateSize: 56,
    heads: 5,
    kvHeads: 1,
    headDim: 8,
    vocabSize: 50,
    tiedHead: true,
  };

  /** Normal numbers from a fixed seed, scaled so that activations keep their size. */
  function randomWeights(): DecoderWeights {
    const made = new Map<string, Float32Array>();
    const random = (key: string, rows: number, columns: number): Float32Array => {
      const found = made.get(key);
      if (found) return found;
      let state = [...key].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % 2147483647;
      const uniform = () => (state = (state * 48271) % 2147483647) / 2147483647;
      const values = Float32Array.from(
        { length: rows * columns },
        () => (uniform() + uniform() + uniform() - 1.5) * (2 / Math.sqrt(columns)),
      );
      made.set(key, values);
      return values;
    };
    return {
      config,
      part: (part) =>
        part === 'norm' ? new Float32Array(40).fill(1) : random('embedding', config.vocabSize, 40),
      layer: (layer, part) => {
        if (part === 'attentionNorm' || part === 'mlpNorm') return new Float32Array(40).fill(1);
        const [out, inner] = linearShape(config, part as LinearModule);
        return random(`${layer}.${part}`, out, inner);
      },
    };
  }

  test.each(['q8', 'q4'] as const)('%s computes what its dequantised weights do', async (precision) => {
    const ids = [3, 49, 0, 17, 17, 8, 31, 2, 40];
    const run = async (weights: DecoderWeights, kind: GraphPrecision) => {
      const steps = await openSteps(await buildGraphs(weights, kind));
      const { logits } = await steps.step([ids]);
      steps.close();
      return logits;
    };
    const reference = await run(quantisedValues(randomWeights(), precision), 'fp32');
    const found = await run(randomWeights(), precision);
    const scale = Math.max(...reference.flatMap((row) => [...row].map(Math.abs)));
    expect(scale).toBeGreaterThan(0.5);
    expect(maxDifference(found, reference) / scale).toBeLessThan(0.05);
  });
});
