import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeDecoder, linearShape, readAdapter } from '../../../src/model/index.js';
import {
  readTrained,
  type TrainedForm,
  writeTrained,
} from '../../../src/training/checkpoint/trained-files.js';
import { exportAdapter, referenceDigest } from '../../../src/training/index.js';
import type { Parameter } from '../../../src/training/training-model.js';
import { derivedSeed } from '../../../src/util/derived-seed.js';
import { randomNumbers } from '../../../src/util/random.js';
import { openSafetensorsFile } from '../../../src/weights/index.js';

const FIXTURES = join(__dirname, '..', '..', 'fixtures');
const folder = mkdtempSync(join(tmpdir(), 'searchloop-trained-'));
afterAll(() => rmSync(folder, { recursive: true }));

const form: TrainedForm = {
  kind: 'lora',
  baseModel: 'owner/tiny',
  lora: { rank: 2, alpha: 6, targetModules: ['q_proj', 'down_proj'] },
};
const source = openSafetensorsFile(join(FIXTURES, 'models', 'tiny-llama', 'model.safetensors'));
const decoder = describeDecoder({
  configJson: JSON.parse(readFileSync(join(FIXTURES, 'models', 'tiny-llama', 'config.json'), 'utf8')),
  tensors: source.tensors,
});
source.close();

function madeParameters(): Parameter[] {
  const random = randomNumbers(derivedSeed('trained'));
  const make = (name: string, shape: number[]): Parameter => ({
    name,
    shape,
    values: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => random() - 0.5),
    gradient: new Float32Array(0),
  });
  return [0, 1].flatMap((layer) =>
    (['q', 'down'] as const).flatMap((module) => {
      const [out, inner] = linearShape(decoder, module);
      const block = module === 'q' ? 'self_attn' : 'mlp';
      const name = `base_model.model.model.layers.${layer}.${block}.${module}_proj`;
      return [make(`${name}.lora_A.weight`, [2, inner]), make(`${name}.lora_B.weight`, [out, 2])];
    }),
  );
}

test('an adapter is written as PEFT writes it: our own reader and this one give the values back exactly', async () => {
  const place = join(folder, 'adapter');
  const parameters = madeParameters();
  await writeTrained(place, form, parameters);
  const values = readTrained(place, form, parameters);
  for (const [i, parameter] of parameters.entries()) expect(values[i]).toEqual(parameter.values);
  const adapter = readAdapter(place, decoder);
  expect(adapter.rank).toBe(2);
  expect(adapter.modules).toHaveLength(4);
  expect(adapter.modules[0]).toMatchObject({ layer: 0, module: 'q', scale: 3, a: parameters[0]?.values });
  const [config, peft] = [place, join(FIXTURES, 'lora', 'tiny-llama', 'policy')].map(
    (at) => JSON.parse(readFileSync(join(at, 'adapter_config.json'), 'utf8')) as Record<string, unknown>,
  ) as [Record<string, unknown>, Record<string, unknown>];
  // Every setting of ours is one of PEFT's.
  expect(Object.keys(config).filter((key) => !(key in peft))).toEqual([]);
  expect(config).toMatchObject({
    peft_type: 'LORA',
    r: 2,
    lora_alpha: 6,
    base_model_name_or_path: 'owner/tiny',
  });
  const [ours, theirs] = [place, join(FIXTURES, 'lora', 'tiny-llama', 'policy')].map((at) => {
    const file = openSafetensorsFile(join(at, 'adapter_model.safetensors'));
    file.close();
    return [...file.tensors.keys()];
  }) as [string[], string[]];
  expect(ours.filter((name) => !theirs.includes(name))).toEqual([]);
});

test('a critic has its value head in a file of its own', async () => {
  const place = join(folder, 'critic');
  const head = ['weight', 'bias'].map((part) => ({
    name: `value_head.${part}`,
    shape: part === 'bias' ? [1] : [1, 64],
    values: Float32Array.from({ length: part === 'bias' ? 1 : 64 }, (_, i) => i / 7),
    gradient: new Float32Array(0),
  }));
  const parameters = [...madeParameters(), ...head];
  await writeTrained(place, form, parameters);
  expect(readTrained(place, form, parameters)).toEqual(parameters.map(({ values }) => values));
  expect(readAdapter(place, decoder).modules).toHaveLength(4);
});

test('other shapes and missing tensors are told by name', async () => {
  const place = join(folder, 'other');
  const parameters = madeParameters();
  await writeTrained(place, form, parameters.slice(1));
  expect(() => readTrained(place, form, parameters)).toThrow(
    /q_proj.lora_A.weight" is missing, expected \[2,64\]/,
  );
  const wider = parameters.map((item) => ({ ...item, shape: [3, ...item.shape.slice(1)] }));
  expect(() => readTrained(place, form, wider.slice(1))).toThrow(/is \[64,2\], expected \[3,2\]/);
});

test('an adapter of another scale comes back as what it adds, whatever its names', async () => {
  const parameters = madeParameters();
  const [place, config] = [join(folder, 'scaled'), join(folder, 'scaled', 'adapter_config.json')];
  const scaledBy = async (factor: number) => {
    const scaled = parameters.map((item) =>
      item.name.includes('lora_B') ? { ...item, values: item.values.map((value) => value * factor) } : item,
    );
    const short = scaled.map((item) => ({ ...item, name: item.name.replace('base_model.model.model.', '') }));
    await writeTrained(place, form, short);
    return JSON.parse(readFileSync(config, 'utf8')) as object;
  };
  const values = parameters.map((item) => item.values);
  const halved = await scaledBy(2);
  writeFileSync(config, JSON.stringify({ ...halved, lora_alpha: 3 }));
  expect(readTrained(place, form, parameters)).toEqual(values);
  // Rank 2: alpha / sqrt(2) where the form has alpha / 2.
  const stabilised = await scaledBy(Math.SQRT1_2);
  writeFileSync(config, JSON.stringify({ ...stabilised, use_rslora: true }));
  for (const [i, tensor] of readTrained(place, form, parameters).entries())
    for (const [at, value] of tensor.entries()) expect(value).toBeCloseTo(values[i]?.[at] as number, 6);
  expect(() => readTrained(place, form, parameters.slice(0, -2))).toThrow(
    /layers.1.mlp.down_proj.lora_A.weight" belongs to nothing that is trained here/,
  );
});

test('a reference policy changes the layers that are trained, at their rank', async () => {
  const place = join(folder, 'reference');
  const parameters = madeParameters();
  await writeTrained(place, form, parameters);
  const start = readAdapter(place, decoder);
  expect(referenceDigest(place, decoder, start, 2)).toBe(start.digest);
  expect(referenceDigest('base', decoder, start, 2)).toBe('base');
  expect(() => referenceDigest(place, decoder, null, 2)).toThrow(
    /does not change layers.0.self_attn.k_proj, which this run trains/,
  );
  expect(() => referenceDigest(place, decoder, null, 4)).toThrow(/its rank is 2, this run trains 4/);
  const fewer = { ...start, modules: start.modules.slice(1) };
  expect(() => referenceDigest(place, decoder, fewer, 2)).toThrow(
    /it changes layers.0.self_attn.q_proj, which this run does not train/,
  );
  expect(() => referenceDigest(join(folder, 'nowhere'), decoder, start, 2)).toThrow(/does not exist/);
});

test('an adapter handed on in half precision is half as large and nearly the same', async () => {
  const [place, output] = [join(folder, 'full'), join(folder, 'half')];
  await writeTrained(place, form, madeParameters());
  await exportAdapter(place, output, 'F16', 'hub/name');
  const [full, half] = [readAdapter(place, decoder), readAdapter(output, decoder)];
  expect(half.digest).not.toBe(full.digest);
  for (const [i, module] of full.modules.entries())
    for (const [j, value] of module.a.entries())
      expect(Math.abs(value - (half.modules[i]?.a[j] as number))).toBeLessThan(5e-4);
  const config = JSON.parse(readFileSync(join(output, 'adapter_config.json'), 'utf8'));
  expect(config.base_model_name_or_path).toBe('hub/name');
});
