// AdamW and the gradient norm against PyTorch: first step from stored gradients; its state; refusals.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { clipScale, gradientNorm } from '../../../src/training/optimizers/gradient-norm.js';
import { AdamW } from '../../../src/training/optimizers/index.js';
import type { Parameter } from '../../../src/training/training-model.js';
import { openSafetensorsFile } from '../../../src/weights/index.js';

const folder = join(__dirname, '..', '..', 'fixtures', 'lora');
const decoders = readdirSync(folder);

function readTensors(path: string): Map<string, { shape: readonly number[]; values: Float32Array }> {
  const source = openSafetensorsFile(path);
  try {
    return new Map(
      [...source.tensors].map(([name, { shape }]) => [
        name,
        { shape, values: source.readFloat32(name).slice() },
      ]),
    );
  } finally {
    source.close();
  }
}

function parametersOf(decoder: string, gradients: string): Parameter[] {
  const values = readTensors(join(folder, decoder, 'policy', 'adapter_model.safetensors'));
  const wanted = readTensors(join(folder, decoder, 'gradients', `${gradients}.safetensors`));
  expect(wanted.size).toBe(values.size);
  return [...values].map(([name, { shape, values: data }]) => {
    return { name, shape, values: data, gradient: wanted.get(name)!.values };
  });
}

const runs = decoders.flatMap((decoder) =>
  ['sft', 'grpo.seq-mean-token-mean'].flatMap((loss) =>
    [0, 0.01].map((decay) => [decoder, loss, decay] as const),
  ),
);

test('sixteen runs', () => expect(runs).toHaveLength(16));

test.each(runs)("%s, %s, weight decay %d: the first step is torch's", (decoder, loss, weightDecay) => {
  const parameters = parametersOf(decoder, loss);
  const { adamw } = JSON.parse(readFileSync(join(folder, decoder, 'cases.json'), 'utf8'));
  const run = adamw.runs.find(
    (r: { case: string; weightDecay: number }) => r.case === loss && r.weightDecay === weightDecay,
  );
  const result = new AdamW(parameters).update({
    learningRate: adamw.lr,
    weightDecay,
    maxGradientNorm: adamw.maxNorm,
  });
  expect(Math.abs(result.gradientNorm / run.steps[0].gradNormBeforeClip - 1)).toBeLessThan(1e-5);
  const wanted = readTensors(join(folder, decoder, 'adamw', `${loss}.wd${weightDecay}.step1.safetensors`));
  let [entries, off] = [0, 0];
  for (const { name, values } of parameters) {
    const theirs = wanted.get(name)!.values;
    values.forEach((value, i) => {
      entries += 1;
      if (Math.abs(value - theirs[i]!) > 2e-5) off += 1;
    });
  }
  expect(entries).toBeGreaterThan(5000);
  expect(off / entries).toBeLessThanOrEqual(0.002);
});

const small = (gradient: readonly number[]): Parameter => ({
  name: 'w',
  shape: [gradient.length],
  values: Float32Array.from(gradient, () => 1),
  gradient: Float32Array.from(gradient),
});
const rule = { learningRate: 0.1, weightDecay: 0.01, maxGradientNorm: 1e9 };

test('several steps are those of the formula written out', () => {
  const parameter = small([0.5, -2, 0]);
  const optimizer = new AdamW([parameter]);
  const [w, m, v] = [
    [1, 1, 1],
    [0, 0, 0],
    [0, 0, 0],
  ];
  for (let n = 1; n <= 4; n++) {
    parameter.gradient[0] = Math.fround(0.5 / n);
    optimizer.update(rule);
    for (let i = 0; i < 3; i++) {
      const g = parameter.gradient[i]!;
      m[i] = 0.9 * m[i]! + 0.1 * g;
      v[i] = 0.999 * v[i]! + 0.001 * g * g;
      w[i]! *= 1 - 0.1 * 0.01;
      w[i]! -= (0.1 * (m[i]! / (1 - 0.9 ** n))) / (Math.sqrt(v[i]! / (1 - 0.999 ** n)) + 1e-8);
    }
    expect([...parameter.values]).toEqual(w.map((value) => expect.closeTo(value, 5)));
  }
  expect(optimizer.updates).toBe(4);
});

test('goes on bit for bit from a stored state', () => {
  const [first, second] = [small([0.3, -1, 4]), small([0.3, -1, 4])];
  const undisturbed = new AdamW([first]);
  undisturbed.update(rule);
  undisturbed.update(rule);
  const before = new AdamW([second]);
  before.update(rule);
  const stored = before.moments.map(({ name, values }) => [name, values.slice()] as const);
  const resumed = new AdamW([second]);
  for (const [name, values] of stored)
    resumed.moments.find((moment) => moment.name === name)!.values.set(values);
  resumed.restore(before.updates);
  resumed.update(rule);
  expect(second.values).toEqual(first.values);
  expect(resumed.moments).toEqual(undisturbed.moments);
  expect(resumed.moments.map(({ name }) => name)).toEqual(['first.w', 'second.w']);
  expect(() => resumed.restore(-1)).toThrow('updates: expected a whole number from 0, got -1');
});

test('a gradient that is not finite is named and changes nothing', () => {
  const [good, bad] = [small([1, 2]), { ...small([1, Number.NaN]), name: 'layers.0.lora_A' }];
  const optimizer = new AdamW([good, bad]);
  expect(() => optimizer.update(rule)).toThrow(
    'gradient of parameter layers.0.lora_A: entry 1 is not finite (NaN)',
  );
  expect([...good.values, ...bad.values]).toEqual([1, 1, 1, 1]);
  expect(optimizer.updates).toBe(0);
  expect(optimizer.moments.every(({ values }) => values.every((value) => value === 0))).toBe(true);
});

test("the norm runs over all parameters; clipping is torch's", () => {
  expect(gradientNorm([small([3]), small([0, 4])])).toBe(5);
  expect(gradientNorm([small([3.4e38, 3.4e38])])).toBeCloseTo(Math.fround(3.4e38) * Math.SQRT2, -30);
  expect(gradientNorm([])).toBe(0);
  expect(clipScale(5, 1)).toBe(1 / (5 + 1e-6));
  expect([clipScale(0.5, 1), clipScale(0, 1)]).toEqual([1, 1]);
  expect(() => clipScale(1, 0)).toThrow('maxGradientNorm must be positive, got 0');
});
