// The trainer takes the values that the engine's blocks stand for, in float32; the engine rounds activations to int8. How
// far their log-probabilities lie apart on the engine's own rollouts, with real weights and an adapter that is not zero.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configSchema, homeFolder, loadConfig } from '../../../src/config/index.js';
import { createEngine, RAW_POLICY } from '../../../src/engine/index.js';
import { type GraphPrecision, preparePrecision } from '../../../src/model/index.js';
import { openRuntime } from '../../../src/runtime/index.js';
import { createTokenizer } from '../../../src/tokenizer/index.js';
import { writeTrained } from '../../../src/training/checkpoint/trained-files.js';
import { openDecoderWeights } from '../../../src/training/index.js';
import { openTrainingModel } from '../../../src/training/model/open-training-model.js';
import type { TrainingModel } from '../../../src/training/training-model.js';
import { randomNumbers } from '../../../src/util/random.js';
import { realModel } from '../../support/real-model.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-gap-'));
afterAll(() => rmSync(folder, { recursive: true }));
jest.setTimeout(600_000);

const QUESTIONS = [
  'Which river flows through Vienna?',
  'Name a colour of the rainbow and say why you chose it.',
];
const TOKENS = 40;

const form = {
  kind: 'lora',
  baseModel: 'smollm2',
  lora: {
    rank: 4,
    alpha: 8,
    targetModules: ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'],
  },
} as const;

async function openTrained(precision: GraphPrecision): Promise<TrainingModel> {
  const model = await realModel('smollm2-135m-instruct');
  const source = model.openWeights();
  const training = await openTrainingModel({
    runtime: await openRuntime(),
    weights: openDecoderWeights(model, source),
    precision,
    trainable: { kind: 'lora', rank: 4, alpha: 8, seed: 1 },
    threads: 2,
    spinning: false,
  });
  source.close();
  const random = randomNumbers(9);
  for (const { values } of training.parameters)
    for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) + 0.02 * (random() - 0.5);
  return training;
}

/** What the engine sampled, with the log-probabilities that it reported. */
async function sampled(precision: GraphPrecision, adapter: string) {
  const model = await realModel('smollm2-135m-instruct');
  const tokenizerSource = await model.readTokenizer();
  const tokenizer = createTokenizer(tokenizerSource);
  const engine = await createEngine({
    modelId: 'smollm2',
    graphs: await preparePrecision(homeFolder(loadConfig()), model, precision),
    tokenizer: tokenizerSource,
    settings: { ...configSchema.parse({}).engine, maxSequences: 2, maxSequenceTokens: 256, threads: 2 },
    spinning: false,
  });
  try {
    await engine.loadAdapter('trained', adapter);
    const sequences = [];
    for (const [seed, question] of QUESTIONS.entries()) {
      const prompt = tokenizer.encodeChat([{ role: 'user', content: question }], {
        addGenerationPrompt: true,
      });
      const sequence = await engine.open({ adapter: 'trained', seed });
      sequence.append(prompt);
      const tokens = [];
      const turn = {
        sampling: RAW_POLICY,
        maxTokens: TOKENS,
        stopStrings: [],
        stopTokenIds: [],
        ignoreEos: true,
      };
      for await (const { token } of sequence.generate(turn)) tokens.push(token);
      sequence.close();
      sequences.push({
        tokenIds: [...prompt, ...tokens.map(({ id }) => id)],
        targets: tokens.map((_, i) => prompt.length + i),
        logprobs: tokens.map(({ logprob }) => logprob),
      });
    }
    return sequences;
  } finally {
    await engine.close();
  }
}

test.each([
  ['fp32', 1e-4, 2e-3],
  // Measured: 0.09 on average, 0.46 at worst; tokens drawn at temperature 1 are often unlikely ones.
  ['q8', 0.15, 1],
] as const)('%s: engine and trainer see one policy', async (precision, mostMean, mostWorst) => {
  const training = await openTrained(precision);
  const adapter = join(folder, precision);
  await writeTrained(adapter, form, training.parameters);
  const sequences = await sampled(precision, adapter);
  const { logprobs } = await training.score({ sequences });
  training.close();
  const gaps = sequences
    .flatMap((sequence) => sequence.logprobs)
    .map((logprob, i) => Math.abs(logprob - (logprobs[i] as number)));
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const worst = Math.max(...gaps);
  expect(gaps).toHaveLength(QUESTIONS.length * TOKENS);
  expect(mean).toBeLessThan(mostMean);
  expect(worst).toBeLessThan(mostWorst);
});
