import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  type Adapter,
  type DecoderConfig,
  layOutAdapters,
  linearShape,
  readAdapter,
} from '../../src/model/index.js';
import { openWeights, writeSafetensors } from '../../src/weights/index.js';
import { DECODERS, fixture, readJson } from '../support/fixtures.js';
import { modelWeights } from '../support/model-weights.js';
import { buildGraphs, maxDifference, storedRows } from './support/fixtures.js';
import { openSteps, temporaryFolder } from './support/step-runner.js';

const LOGITS = 2e-4;

const policyOf = (name: string, config: DecoderConfig): Adapter =>
  readAdapter(fixture('lora', name, 'policy'), config);
const sequencesOf = (name: string): number[][] =>
  readJson('lora', name, 'batch.json').sequences.map((item: { tokenIds: number[] }) => item.tokenIds);

describe.each([...DECODERS])('%s', (name) => {
  const weights = modelWeights(name);
  const { config } = weights;

  test('an adapter gives the stored logits', async () => {
    const steps = await openSteps(await buildGraphs(weights), { adapters: true });
    const layout = layOutAdapters(config, [policyOf(name, config)]);
    const stored = storedRows('lora', name, 'logits.safetensors');
    for (const [index, ids] of sequencesOf(name).slice(0, 3).entries()) {
      steps.reset();
      const result = await steps.step([ids], { adapters: { layout, rows: [0] } });
      expect(maxDifference(result.logits, stored(`logits.${index}`))).toBeLessThan(LOGITS);
      if (index === 0) expect(maxDifference(result.logits, stored('mergedLogits.0'))).toBeLessThan(LOGITS);
    }
    steps.close();
  });

  test('one run over rows on different versions equals runs of each alone', async () => {
    const graphs = await buildGraphs(weights);
    const plain = await openSteps(graphs);
    const steps = await openSteps(graphs, { adapters: true });
    const critic = readAdapter(fixture('lora', name, 'critic'), config);
    const versions = [policyOf(name, config), critic];
    const layout = layOutAdapters(config, versions);
    const rows = [0, null, 1, 0];
    const ids = sequencesOf(name)
      .slice(0, 4)
      .map((sequence) => sequence.slice(0, 12));
    const together: Float32Array[][] = rows.map(() => []);
    for (let at = 0; at < 12; at++) {
      const { logits } = await steps.step(
        ids.map((row) => [row[at]!]),
        { adapters: { layout, rows } },
      );
      logits.forEach((row, index) => {
        together[index]!.push(row);
      });
    }
    for (const [index, version] of rows.entries()) {
      plain.reset();
      steps.reset();
      const alone =
        version === null
          ? await plain.step([ids[index]!])
          : await steps.step([ids[index]!], {
              adapters: { layout: layOutAdapters(config, [versions[version]!]), rows: [0] },
            });
      expect(maxDifference(together[index]!, alone.logits)).toBeLessThan(LOGITS);
    }
    plain.close();
    steps.close();
  });
});

test('without adapters the adapter graph computes the base model', async () => {
  const weights = modelWeights('tiny-llama');
  const steps = await openSteps(await buildGraphs(weights), { adapters: true });
  const layout = layOutAdapters(weights.config, []);
  const { tokenIds } = readJson('forward', 'tiny-llama.json').sequences[0];
  const { logits } = await steps.step([tokenIds], { adapters: { layout, rows: [null] } });
  const stored = storedRows('forward', 'tiny-llama.safetensors');
  expect(maxDifference(logits, stored('logits.0'))).toBeLessThan(LOGITS);
  steps.close();
});

describe('layout', () => {
  const { config } = modelWeights('tiny-llama');

  /** An adapter of whole numbers, so that sums are exact. */
  const adapterOf = (ranks: Record<string, number>, seed: number): Adapter => {
    let state = seed;
    const values = (length: number) =>
      Float32Array.from({ length }, () => {
        state = (state * 1103515245 + 12345) % 2147483648;
        return (state >> 16) % 4;
      });
    const modules = Object.entries(ranks).map(([key, rank]) => {
      const [layer, module] = key.split('.') as [string, 'q'];
      const [out, inner] = linearShape(config, module);
      return { layer: Number(layer), module, rank, scale: 2, a: values(rank * inner), b: values(out * rank) };
    });
    return { digest: String(seed), rank: Math.max(...Object.values(ranks)), modules };
  };

  test('A times B of the columns of a version is scale times its own product, zero elsewhere', () => {
    const rank = fc.integer({ min: 1, max: 3 });
    const ranks = fc.record(
      { '0.q': rank, '0.v': rank, '1.k': rank, '1.q': rank },
      { requiredKeys: ['0.q'] },
    );
    fc.assert(
      fc.property(fc.array(ranks, { minLength: 1, maxLength: 3 }), (list) => {
        const adapters = list.map((item, index) => adapterOf(item as Record<string, number>, index + 1));
        const layout = layOutAdapters(config, adapters);
        const columns = layout.ranks.qkv;
        for (const [index, adapter] of adapters.entries()) {
          const mask = layout.masks([index])['lora_mask.qkv']!.data;
          for (const layer of [0, 1]) {
            const a = layout.inputs[`lora.${layer}.qkv.a`]!.data as Float32Array;
            const b = layout.inputs[`lora.${layer}.qkv.b`]!.data as Float32Array;
            for (const [first, module] of [
              [0, 'q'],
              [64, 'k'],
              [96, 'v'],
            ] as const) {
              const item = adapter.modules.find((part) => part.layer === layer && part.module === module);
              for (const [i, o] of [
                [0, 0],
                [63, 31],
                [17, 5],
              ] as const) {
                let found = 0;
                for (let r = 0; r < columns; r++)
                  found += a[i * columns + r]! * Number(mask[r]) * b[r * 128 + first + o]!;
                let expected = 0;
                for (let r = 0; item && r < item.rank; r++)
                  expected += 2 * item.a[r * 64 + i]! * item.b[o * item.rank + r]!;
                expect(found).toBe(expected);
              }
            }
          }
        }
      }),
      { numRuns: 30 },
    );
  });

  test('a row that names no version is refused', () => {
    const layout = layOutAdapters(config, [adapterOf({ '0.q': 1 }, 1)]);
    expect(() => layout.masks([0, 1])).toThrow(RangeError);
  });
});

describe('reading', () => {
  const { config } = modelWeights('tiny-llama');

  /** A copy of the stored adapter with changed settings or bytes. */
  function variant(settings: object, change?: (bytes: Buffer) => Buffer): string {
    const folder = temporaryFolder();
    cpSync(fixture('lora', 'tiny-llama', 'policy'), folder, { recursive: true });
    const path = join(folder, 'adapter_config.json');
    const json = { ...JSON.parse(readFileSync(path, 'utf8')), ...settings };
    writeFileSync(path, JSON.stringify(json));
    const weights = join(folder, 'adapter_model.safetensors');
    if (change) writeFileSync(weights, change(readFileSync(weights)));
    return folder;
  }

  /** The file with its header's text changed and its length written anew. */
  const withHeader = (edit: (header: string) => string) => (bytes: Buffer) => {
    const length = Number(bytes.readBigUInt64LE(0));
    const header = Buffer.from(edit(bytes.subarray(8, 8 + length).toString()));
    const start = Buffer.alloc(8);
    start.writeBigUInt64LE(BigInt(header.length));
    return Buffer.concat([start, header, bytes.subarray(8 + length)]);
  };

  const scaleOf = (settings: object) => readAdapter(variant(settings), config).modules[0]!.scale;

  test('scale is alpha / r, or alpha / sqrt(r) where use_rslora says so', () => {
    expect(scaleOf({})).toBe(2);
    expect(scaleOf({ lora_alpha: 16 })).toBe(4);
    expect(scaleOf({ lora_alpha: 16, use_rslora: true })).toBe(8);
  });

  test('alpha_pattern and rank_pattern are honoured', () => {
    const adapter = readAdapter(variant({ alpha_pattern: { 'layers.1.self_attn.q_proj': 20 } }), config);
    const scales = adapter.modules.filter(({ module }) => module === 'q').map(({ scale }) => scale);
    expect(scales).toEqual([2, 5]);
    const rank = variant({ r: 8, rank_pattern: { '.*_proj': 4 } });
    expect(readAdapter(rank, config).modules.every((item) => item.rank === 4 && item.scale === 2)).toBe(true);
    expect(() => readAdapter(variant({ rank_pattern: { q_proj: 8 } }), config)).toThrow(
      /layers\.0\.self_attn\.q_proj\.lora_A\.weight" is \[4,64\], expected \[8,64\]/,
    );
  });

  test('unknown and empty keys of newer versions are ignored', () => {
    const settings = { eva_config: null, corda_config: null, lora_bias: false, foo: 1, loftq_config: {} };
    expect(readAdapter(variant(settings), config).rank).toBe(4);
  });

  test.each([
    [{ use_dora: true }, 'use_dora'],
    [{ bias: 'all' }, 'bias'],
    [{ modules_to_save: ['lm_head'] }, 'modules_to_save'],
    [{ peft_type: 'LOHA' }, 'peft_type'],
    [{ fan_in_fan_out: true }, 'fan_in_fan_out'],
    [{ init_lora_weights: 'pissa' }, 'init_lora_weights'],
    [{ layer_replication: [[0, 1]] }, 'layer_replication'],
  ])('%j is refused by name', (settings, key) => {
    expect(() => readAdapter(variant(settings), config)).toThrow(
      expect.objectContaining({ code: 'unsupported', message: expect.stringContaining(key) }),
    );
  });

  test.each(['lm_head', 'embed_tokens', 'foo_proj'])('a target "%s" is refused by name', (name) => {
    expect(() => readAdapter(variant({ target_modules: ['q_proj', name] }), config)).toThrow(
      expect.objectContaining({ code: 'unsupported', message: expect.stringContaining(`"${name}"`) }),
    );
  });

  test('a rank above the limit is refused with both numbers', () => {
    expect(() => readAdapter(variant({}), config, { maxRank: 2 })).toThrow(
      expect.objectContaining({
        code: 'invalid_input',
        message: expect.stringMatching(/rank 4 .* limit of 2/),
      }),
    );
  });

  test.each([
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
  ])('%p in a tensor is refused with its name', (value, text) => {
    const folder = variant({}, (bytes) => {
      bytes.writeFloatLE(value, Number(bytes.readBigUInt64LE(0)) + 8 + 12);
      return bytes;
    });
    expect(() => readAdapter(folder, config)).toThrow(
      new RegExp(`layers\\.0\\.mlp\\.down_proj\\.lora_A\\.weight" holds ${text} at element 3`),
    );
  });

  test('a tensor that the settings target and the file lacks is named', () => {
    const renamed = variant(
      {},
      withHeader((header) => header.replace('0.self_attn.k_proj.lora_B', '0.self_attn.k_proj.lora_C')),
    );
    expect(() => readAdapter(renamed, config)).toThrow(/k_proj\.lora_C/);
    const moved = variant(
      {},
      withHeader((header) => header.replaceAll('layers.1.', 'layers.7.')),
    );
    expect(() => readAdapter(moved, config)).toThrow(/the model has 2 layers/);
    const narrower = { target_modules: ['q_proj'], layers_to_transform: [0] };
    expect(readAdapter(variant(narrower), config).modules).toHaveLength(14);
  });

  test('an adapter of another model is refused with both shapes', () => {
    const other = modelWeights('tiny-qwen3').config;
    expect(() => readAdapter(fixture('lora', 'tiny-llama', 'policy'), other)).toThrow(
      /is \[64,4\], expected \[96,4\]/,
    );
  });

  test('the digest follows content, not the folder or idle settings', () => {
    const digest = readAdapter(fixture('lora', 'tiny-llama', 'policy'), config).digest;
    expect(readAdapter(variant({ foo: 2 }), config).digest).toBe(digest);
    expect(readAdapter(variant({ lora_alpha: 9 }), config).digest).not.toBe(digest);
    expect(readAdapter(fixture('lora', 'tiny-llama', 'critic'), config).digest).not.toBe(digest);
  });

  test.each([
    ['F16', 2 ** -11],
    ['BF16', 2 ** -8],
  ] as const)('%s weights are read', async (type, precision) => {
    const folder = variant({});
    const source = openWeights(fixture('lora', 'tiny-llama', 'policy', 'adapter_model.safetensors'));
    const tensors = [...source.tensors.values()].map(({ name, shape }) => ({
      name,
      shape,
      type,
      data: () => source.readFloat32(name),
    }));
    await writeSafetensors(join(folder, 'adapter_model.safetensors'), tensors);
    const [exact, rounded] = [policyOf('tiny-llama', config), readAdapter(folder, config)];
    for (const [index, item] of exact.modules.entries())
      item.a.forEach((value, at) => {
        expect(Math.abs(rounded.modules[index]!.a[at]! - value)).toBeLessThanOrEqual(
          Math.abs(value) * precision + 1e-7,
        );
      });
  });

  test('missing files are named', () => {
    expect(() => readAdapter(temporaryFolder(), config)).toThrow(/adapter_config\.json does not exist/);
  });
});
