import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { importModel, openModel, readAdapter, type StoredModel } from '../../../src/model/index.js';
import { openRuntime } from '../../../src/runtime/index.js';
import { createTokenizer } from '../../../src/tokenizer/index.js';
import { writeTrained } from '../../../src/training/checkpoint/trained-files.js';
import { ggufMetadata } from '../../../src/training/export/gguf-metadata.js';
import { mergedWeights } from '../../../src/training/export/merged-weights.js';
import { exportGguf, exportSafetensors, openDecoderWeights } from '../../../src/training/index.js';
import { openTrainingModel } from '../../../src/training/model/open-training-model.js';
import { openSafetensorsFile } from '../../../src/weights/index.js';
import { DECODERS } from '../../support/fixtures.js';

const FIXTURES = join(__dirname, '..', '..', 'fixtures');
const folder = mkdtempSync(join(tmpdir(), 'searchloop-export-'));
afterAll(() => rmSync(folder, { recursive: true }));

const TEXT = 'It costs 1,234 euro, hélas!\n\n<|im_start|> is no token here.';

const imported = (name: string, source = join(FIXTURES, 'models', name)) =>
  importModel(source, folder, { id: name });

/** Every tensor of a model, with an adapter added. */
function valuesOf(model: StoredModel, adapter: string | null = null): Map<string, Float32Array> {
  const source = model.openWeights();
  const weights = openDecoderWeights(model, source);
  const merged = mergedWeights(weights, adapter === null ? null : readAdapter(adapter, weights.config));
  const { config } = weights;
  const values = new Map([
    ['embedding', merged.part('embedding')],
    ['norm', merged.part('norm')],
    ['head', merged.part('head')],
  ]);
  const parts = ['q', 'k', 'v', 'o', 'gate', 'up', 'down', 'attentionNorm', 'mlpNorm'] as const;
  for (let layer = 0; layer < config.layers; layer++)
    for (const part of [
      ...parts,
      ...(config.qkvBias ? (['qBias', 'kBias', 'vBias'] as const) : []),
      ...(config.qkNorm ? (['qNorm', 'kNorm'] as const) : []),
    ])
      values.set(`${layer}.${part}`, merged.layer(layer, part));
  source.close();
  return values;
}

function configOf(model: StoredModel) {
  const source = model.openWeights();
  const { config } = openDecoderWeights(model, source);
  source.close();
  return config;
}

async function logprobsOf(model: StoredModel, ids: number[]): Promise<Float32Array> {
  const source = model.openWeights();
  const training = await openTrainingModel({
    runtime: await openRuntime(),
    weights: openDecoderWeights(model, source),
    precision: 'fp32',
    trainable: { kind: 'lora', rank: 1, alpha: 1, seed: 0 },
    threads: 1,
    spinning: false,
  });
  const targets = ids.slice(1).map((_, t) => t + 1);
  const { logprobs } = await training.score({ sequences: [{ tokenIds: ids, targets }] });
  training.close();
  source.close();
  return logprobs;
}

const largestGap = (a: Float32Array, b: Float32Array): number =>
  a.reduce((most, value, i) => Math.max(most, Math.abs(value - (b[i] as number))), 0);

test.each(DECODERS)('%s with an adapter comes back from both formats as it went out', async (name) => {
  const adapter = join(FIXTURES, 'lora', name, 'policy');
  const model = await imported(name);
  const expected = valuesOf(model, adapter);
  const hub = join(folder, `${name}-hub`);
  await exportSafetensors({ model, adapter }, hub, 'F32');
  const gguf = join(folder, `${name}.gguf`);
  await exportGguf({ model, adapter }, gguf, 'F32');
  const again = [await imported(`${name}-hub`, hub), await imported(`${name}-gguf`, gguf)];
  const tokenizer = createTokenizer(await model.readTokenizer());
  const ids = tokenizer.encodePlain(TEXT).slice(0, 24);
  const reference = await logprobsOf(again[0] as StoredModel, ids);
  for (const [i, exported] of again.entries()) {
    const found = valuesOf(exported);
    expect([...found.keys()]).toEqual([...expected.keys()]);
    for (const [key, values] of expected) expect(largestGap(values, found.get(key) as Float32Array)).toBe(0);
    const { ropeScaling, eosTokenIds, ...config } = configOf(exported);
    const { ropeScaling: scaling, eosTokenIds: ends, ...wanted } = configOf(model);
    expect(config).toEqual(wanted);
    expect(new Set(eosTokenIds)).toEqual(new Set(ends));
    // A GGUF file has the divisors themselves.
    expect(ropeScaling.kind).toBe(i === 1 && scaling.kind === 'llama3' ? 'stored' : scaling.kind);
    expect(largestGap(await logprobsOf(exported, ids), reference)).toBeLessThan(1e-5);
    const own = createTokenizer(await exported.readTokenizer());
    expect(own.encodePlain(TEXT)).toEqual(tokenizer.encodePlain(TEXT));
    const chat = [{ role: 'user' as const, content: TEXT }];
    expect(own.encodeChat(chat, { addGenerationPrompt: true })).toEqual(
      tokenizer.encodeChat(chat, { addGenerationPrompt: true }),
    );
  }
});

describe('tokens that end a text, in GGUF', () => {
  /** The tiny model with these ends. */
  const withEnds = async (name: string, ends: readonly number[]): Promise<StoredModel> => {
    const source = join(folder, `${name}-source`);
    cpSync(join(FIXTURES, 'models', 'tiny-llama'), source, { recursive: true });
    const path = join(source, 'config.json');
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), eos_token_id: ends }));
    return imported(name, source);
  };

  test('three come back', async () => {
    const model = await withEnds('three-ends', [2, 5, 511]);
    const ends = configOf(model).eosTokenIds;
    expect(ends).toEqual([2, 5, 511]);
    const gguf = join(folder, 'three-ends.gguf');
    await exportGguf({ model, adapter: null }, gguf, 'F32');
    expect(configOf(await imported('three-ends-gguf', gguf)).eosTokenIds).toEqual(ends);
  });

  test('the end of a turn has its own role, wherever it stands among them', async () => {
    const model = await imported('tiny-llama-ends', join(FIXTURES, 'models', 'tiny-llama'));
    const { tokenizerJson, ...source } = await model.readTokenizer();
    const added_tokens = ['<|end_of_text|>', '<|eom_id|>', '<|eot_id|>'].map((content, id) => ({
      id,
      content,
    }));
    const tokenizer = { ...source, tokenizerJson: { ...(tokenizerJson as object), added_tokens } };
    const config = configOf(model);
    const ids = (ends: number[]) => {
      const entries = ggufMetadata('m', { ...config, eosTokenIds: ends }, tokenizer);
      return ['eos', 'eot', 'eom'].map((name) => entries.get(`tokenizer.ggml.${name}_token_id`)?.value);
    };
    expect(ids([0, 1, 2])).toEqual([0, 2, 1]);
    expect(ids([0, 2])).toEqual([0, 2, undefined]);
    expect(ids([0, 4, 5])).toEqual([0, 4, 5]);
    expect(ids([0])).toEqual([0, undefined, undefined]);
    expect(() => ids([0, 1, 2, 3])).toThrow(/up to three tokens .* this model has 4: 0 <.end_of_text.>, /);
  });
});

test('merged weights are those of PEFT', () => {
  const file = openSafetensorsFile(join(FIXTURES, 'lora', 'tiny-llama', 'logits.safetensors'));
  return imported('tiny-llama-peft', join(FIXTURES, 'models', 'tiny-llama')).then((model) => {
    const merged = valuesOf(model, join(FIXTURES, 'lora', 'tiny-llama', 'policy'));
    const names = [...file.tensors.keys()].filter((name) => name.endsWith('.weight'));
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) {
      const [, layer, module] = /layers\.(\d+)\.\w+\.(\w+)_proj/.exec(name) as RegExpExecArray;
      expect(
        largestGap(file.readFloat32(name), merged.get(`${layer}.${module}`) as Float32Array),
      ).toBeLessThan(1e-5);
    }
    file.close();
  });
});

test.each([
  ['a tied model', 'tiny-llama', false],
  ['one with norms of queries and keys', 'tiny-qwen3', false],
  ['one whose file stores rotary factors', 'tiny-llama-rope3', true],
])('whole weights of a checkpoint are exported: %s', async (_kind, name, fromGguf) => {
  let model = await imported(`${name}-whole`, join(FIXTURES, 'models', name));
  if (fromGguf) {
    await exportGguf({ model, adapter: null }, join(folder, 'stored.gguf'), 'F32');
    model = await imported(`${name}-stored`, join(folder, 'stored.gguf'));
  }
  const source = model.openWeights();
  const training = await openTrainingModel({
    runtime: await openRuntime(),
    weights: openDecoderWeights(model, source),
    precision: 'fp32',
    trainable: { kind: 'all' },
    threads: 1,
    spinning: false,
  });
  for (const { values } of training.parameters)
    for (let i = 0; i < values.length; i++) values[i] = (values[i] ?? 0) + 2 ** -7;
  const checkpoint = join(folder, `${name}-checkpoint`);
  await writeTrained(checkpoint, { kind: 'whole' }, training.parameters);
  training.close();
  source.close();
  const policy = { model, adapter: checkpoint };
  const gguf = join(folder, `${name}-whole.gguf`);
  await exportGguf(policy, gguf, 'F32');
  const hub = join(folder, `${name}-whole-hub`);
  if (fromGguf) await expect(exportSafetensors(policy, hub, 'F32')).rejects.toThrow(/rotary factors/);
  else await exportSafetensors(policy, hub, 'F32');
  expect(existsSync(hub)).toBe(!fromGguf);
  const before = valuesOf(model);
  for (const path of fromGguf ? [gguf] : [gguf, hub])
    for (const [key, values] of valuesOf(await imported(`${name}-${basename(path)}-again`, path)))
      expect(
        largestGap(
          values,
          (before.get(key) as Float32Array).map((value) => value + 2 ** -7),
        ),
      ).toBe(0);
});

test('a GGUF source is exported with its own metadata; half precision is the default', async () => {
  const model = await imported('tiny-gguf', join(FIXTURES, 'gguf', 'tiny-llama-q8_0.gguf'));
  const out = join(folder, 'again.gguf');
  await exportGguf({ model, adapter: null }, out, 'Q8_0');
  const again = await imported('tiny-gguf-again', out);
  const before = valuesOf(model);
  for (const [key, values] of valuesOf(again))
    expect(largestGap(values, before.get(key) as Float32Array)).toBe(0);
  const hub = join(folder, 'gguf-as-hub');
  await exportSafetensors({ model, adapter: null }, hub);
  expect(JSON.parse(readFileSync(join(hub, 'config.json'), 'utf8'))).toMatchObject({
    architectures: ['LlamaForCausalLM'],
    torch_dtype: 'float16',
  });
  const half = await imported('gguf-as-hub', hub);
  for (const [key, values] of valuesOf(half))
    expect(largestGap(values, before.get(key) as Float32Array)).toBeLessThan(1e-3);
  expect(await openModel(folder, 'gguf-as-hub')).toBeDefined();
});
