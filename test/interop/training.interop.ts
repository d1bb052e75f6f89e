// Adapters and exports against the tools that they are for: PEFT, transformers and llama.cpp, in a virtual environment.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importModel, readAdapter, type StoredModel } from '../../src/model/index.js';
import { openRuntime } from '../../src/runtime/index.js';
import { createTokenizer } from '../../src/tokenizer/index.js';
import { writeTrained } from '../../src/training/checkpoint/trained-files.js';
import { exportGguf, exportSafetensors, openDecoderWeights } from '../../src/training/index.js';
import { openTrainingModel } from '../../src/training/model/open-training-model.js';
import { DECODERS } from '../support/fixtures.js';
import { askPython } from './support/python.js';

const FIXTURES = join(__dirname, '..', 'fixtures');
const folder = mkdtempSync(join(tmpdir(), 'searchloop-interop-'));
afterAll(() => rmSync(folder, { recursive: true }));

const TEXT = 'It costs 1,234 euro, hélas! Is that much?';

interface Answer {
  readonly logprobs: number[];
  readonly tokens: number[];
}

const imported = (name: string): Promise<StoredModel> =>
  importModel(join(FIXTURES, 'models', name), folder, { id: name });

async function tokensOf(model: StoredModel): Promise<number[]> {
  return createTokenizer(await model.readTokenizer()).encodePlain(TEXT);
}

/** Our own log-probabilities of a text under an adapter, in float32. */
async function ours(model: StoredModel, ids: readonly number[], adapter: string): Promise<Float32Array> {
  const source = model.openWeights();
  const weights = openDecoderWeights(model, source);
  const training = await openTrainingModel({
    runtime: await openRuntime(),
    weights,
    precision: 'fp32',
    trainable: { kind: 'lora', adapter: readAdapter(adapter, weights.config) },
    threads: 1,
    spinning: false,
  });
  const { logprobs } = await training.score({
    sequences: [{ tokenIds: ids, targets: ids.slice(1).map((_, t) => t + 1) }],
  });
  training.close();
  source.close();
  return logprobs;
}

function expectClose(found: readonly number[], expected: Float32Array, tolerance: number): void {
  expect(found).toHaveLength(expected.length);
  for (const [i, value] of found.entries())
    expect(Math.abs(value - (expected[i] as number))).toBeLessThan(tolerance);
}

test.each(DECODERS)('%s: adapters go both ways, merged exports load elsewhere', async (name) => {
  const model = await imported(name);
  const ids = await tokensOf(model);
  const plain = join(folder, `${name}-plain`);
  await exportSafetensors({ model, adapter: null }, plain, 'F32');

  const theirs = join(folder, `${name}-theirs`);
  const made = askPython<Answer>({ task: 'make_adapter', folder: plain, adapter: theirs, ids });
  expectClose(made.logprobs, await ours(model, ids, theirs), 1e-4);

  const source = model.openWeights();
  const weights = openDecoderWeights(model, source);
  const trained = await openTrainingModel({
    runtime: await openRuntime(),
    weights,
    precision: 'fp32',
    trainable: { kind: 'lora', rank: 4, alpha: 6, seed: 2 },
    threads: 1,
  });
  source.close();
  for (const { values } of trained.parameters) for (const i of values.keys()) values[i] = Math.sin(i) / 20;
  const adapter = join(folder, `${name}-ours`);
  const targetModules = ['q', 'k', 'v', 'o', 'gate', 'up', 'down'].map((module) => `${module}_proj`);
  await writeTrained(
    adapter,
    { kind: 'lora', baseModel: plain, lora: { rank: 4, alpha: 6, targetModules } },
    trained.parameters,
  );
  trained.close();
  const expected = await ours(model, ids, adapter);
  expectClose(askPython<Answer>({ task: 'peft', folder: plain, adapter, ids }).logprobs, expected, 1e-4);

  const merged = join(folder, `${name}-merged`);
  await exportSafetensors({ model, adapter }, merged, 'F32');
  const hub = askPython<Answer>({ task: 'transformers', folder: merged, ids, text: TEXT });
  expectClose(hub.logprobs, expected, 1e-4);
  expect(hub.tokens).toEqual(ids);

  const file = join(folder, `${name}.gguf`);
  await exportGguf({ model, adapter }, file, 'F32');
  const llama = askPython<Answer>({ task: 'llama_cpp', file, ids, text: TEXT });
  // llama.cpp keeps keys and values in half precision.
  expectClose(llama.logprobs, expected, 5e-3);
  expect(llama.tokens).toEqual(ids);
});
