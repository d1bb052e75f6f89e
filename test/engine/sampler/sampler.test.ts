import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type { SamplingParameters } from '../../../src/engine/generator.js';
import { KeptTokens } from '../../../src/engine/sampler/kept-tokens.js';
import { negativeExp } from '../../../src/engine/sampler/negative-exp.js';
import { RAW_POLICY } from '../../../src/engine/sampler/parameters.js';
import { TokenCounts } from '../../../src/engine/sampler/penalties.js';
import { prepareSampling, Sampler } from '../../../src/engine/sampler/sampler.js';

interface SamplingCase {
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
  logits: number[];
  kept: number[];
  logprobs: (number | string)[];
  rawLogprobs: number[];
}

const cases: SamplingCase[] = JSON.parse(
  readFileSync(join(__dirname, '../../fixtures/losses/sampling.json'), 'utf8'),
).cases;

const settings = (changes: Partial<SamplingParameters>): SamplingParameters => ({
  ...RAW_POLICY,
  ...changes,
});

/** One draw per uniform number from a copy of the row, at an offset, with a guard on both sides. */
function drawAll(
  logits: readonly number[],
  parameters: SamplingParameters,
  uniforms: readonly number[],
  counts?: TokenCounts,
) {
  const row = Float32Array.from([99, ...logits, 99]);
  const before = row.slice();
  const sampler = new Sampler(logits.length);
  const draws = uniforms.map((uniform) => {
    const fine = sampler.sample(row, 1, Number.NaN, prepareSampling(parameters), counts ?? null, uniform);
    if (!fine) throw new Error('refused');
    return { ...sampler.draw };
  });
  expect(row).toEqual(before);
  return draws;
}

const grid = Array.from({ length: 4000 }, (_, i) => (i + 0.5) / 4000);

describe('against transformers', () => {
  test.each(cases.map((entry, i) => [i, entry] as const))('case %i', (_, entry) => {
    const { temperature, topK, topP, minP, logits } = entry;
    if (topK > 0 || topP < 1 || minP > 0) {
      const kept = new KeptTokens(logits.length);
      kept.select(Float32Array.from(logits), 0, { temperature, topK, topP, minP });
      expect(Array.from(kept.ids.subarray(0, kept.count))).toEqual(entry.kept);
    }
    const draws = drawAll(logits, settings({ temperature, topK, topP, minP }), grid);
    for (const draw of new Map(draws.map((item) => [item.id, item])).values()) {
      expect(entry.kept).toContain(draw.id);
      expect(draw.samplingLogprob).toBeCloseTo(Number(entry.logprobs[draw.id]), 5);
      expect(draw.logprob).toBeCloseTo(entry.rawLogprobs[draw.id] as number, 5);
    }
    // A fine grid of uniform numbers meets each token in proportion to its probability.
    for (const id of entry.kept) {
      const share = draws.filter((draw) => draw.id === id).length / grid.length;
      expect(Math.abs(share - Math.exp(Number(entry.logprobs[id])))).toBeLessThan(2 / grid.length + 1e-9);
    }
  });
});

/** The definition, with a full sort. What lies over 64 nats below the top (1e-28) counts as cut. */
function keptByDefinition(
  logits: Float32Array,
  { temperature, topK, topP, minP }: SamplingParameters,
): number[] {
  let order = Array.from(logits, (value, id) => ({ value, id })).sort(
    (a, b) => b.value - a.value || a.id - b.id,
  );
  const top = (order[0] as { value: number }).value;
  const weight = (value: number) => Math.exp((value - top) / temperature);
  if (topK > 0 && topK < order.length) {
    const least = (order[topK - 1] as { value: number }).value;
    order = order.filter(({ value }) => value >= least);
  }
  const mass = order.reduce((sum, { value }) => sum + weight(value), 0);
  let before = 0;
  const nucleus = order.filter(({ value }) => {
    const stays = topP >= 1 || before < topP * mass;
    before += weight(value);
    return stays;
  });
  return nucleus
    .filter(({ value }) => weight(value) >= minP && (top - value) / temperature <= 64)
    .map(({ id }) => id)
    .sort((a, b) => a - b);
}

test('cuts equal their definition by a full sort, ties included', () => {
  // Logits on a coarse grid: many ties; top-p odd enough that no partial sum of weights meets it exactly.
  const rows = fc.array(fc.integer({ min: -40, max: 40 }), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(
      rows,
      fc.constantFrom(0.25, 0.6, 1, 1.7),
      fc.integer({ min: 0, max: 40 }),
      fc.constantFrom(1, 0.9013577, 0.5127731, 0.0317713),
      fc.constantFrom(0, 0.0123457, 0.3123457),
      (row, temperature, topK, topP, minP) => {
        const logits = Float32Array.from(row, (value) => value / 4);
        const parameters = settings({ temperature, topK, topP, minP });
        const kept = new KeptTokens(logits.length);
        kept.select(logits, 0, parameters);
        expect(Array.from(kept.ids.subarray(0, kept.count))).toEqual(keptByDefinition(logits, parameters));
        const mass = kept.weights.subarray(0, kept.count).reduce((sum, value) => sum + value, 0);
        expect(kept.mass).toBeCloseTo(mass, 9);
      },
    ),
    { numRuns: 300 },
  );
});

test('temperature 1 without cuts: the sampling log-probability is the raw one, at any temperature the raw one stays', () => {
  const logits = Array.from({ length: 3000 }, (_, i) => Math.sin(i * 12.9898) * 6);
  for (const draw of drawAll(logits, RAW_POLICY, grid.slice(0, 50)))
    expect(draw.samplingLogprob).toBe(draw.logprob);
  const [cold] = drawAll(logits, settings({ temperature: 0.2 }), [0.3]);
  const mass = logits.reduce((sum, value) => sum + Math.exp(Math.fround(value)), 0);
  expect(cold?.logprob).toBeCloseTo(Math.fround(logits[cold?.id as number] as number) - Math.log(mass), 5);
  expect(cold?.samplingLogprob).toBeGreaterThan(cold?.logprob as number);
});

test('every temperature draws from its own distribution', () => {
  const logits = Array.from({ length: 2500 }, (_, i) => (i % 50 === 0 ? 3 + (i % 7) : -2));
  for (const temperature of [0.5, 1, 2]) {
    const draws = drawAll(logits, settings({ temperature }), grid);
    const mass = logits.reduce((sum, value) => sum + Math.exp(value / temperature), 0);
    for (const draw of new Map(draws.map((item) => [item.id, item])).values())
      expect(draw.samplingLogprob).toBeCloseTo((logits[draw.id] as number) / temperature - Math.log(mass), 5);
    const highest = draws.filter((draw) => (logits[draw.id] as number) > 0).length / grid.length;
    const expected =
      logits.filter((value) => value > 0).reduce((sum, value) => sum + Math.exp(value / temperature), 0) /
      mass;
    // Each of the 50 runs of ids in between can gain or lose one grid point.
    expect(Math.abs(highest - expected)).toBeLessThan(60 / grid.length);
  }
});

test('greedy takes the lowest id on a tie and has sampling log-probability 0', () => {
  const [draw] = drawAll([1, 5, 5, 2], settings({ temperature: 0, topK: 2, topP: 0.5 }), [0.99]);
  expect(draw).toMatchObject({ id: 1, samplingLogprob: 0 });
  expect(draw?.logprob).toBeCloseTo(Math.log(Math.exp(5) / (Math.E + 2 * Math.exp(5) + Math.exp(2))), 6);
});

test('the last uniform number never draws an impossible token', () => {
  const impossible = [0, 3, 1, -1000, -1000];
  for (const parameters of [RAW_POLICY, settings({ temperature: 0.7 }), settings({ topP: 0.99 })])
    expect(drawAll(impossible, parameters, [1 - 2 ** -53])[0]?.id).toBeLessThan(3);
});

test('penalties and bias change the draw, not the raw log-probability', () => {
  const counts = new TokenCounts();
  counts.add(0, false); // in the prompt
  counts.add(1, true);
  counts.add(1, true);
  const logits = [2, 2, -1, 1.5];
  const greedy = (changes: Partial<SamplingParameters>) =>
    drawAll(logits, settings({ temperature: 0, ...changes }), [0], counts)[0]?.id;
  expect(greedy({})).toBe(0);
  expect(greedy({ frequencyPenalty: 1 })).toBe(0);
  expect(greedy({ repetitionPenalty: 1.5 })).toBe(3); // both 2 become 1.33
  expect(greedy({ frequencyPenalty: -1 })).toBe(1); // 2 + 2
  expect(greedy({ presencePenalty: -0.5, logitBias: { 3: 0.75 } })).toBe(1); // 2.5 against 2.25
  expect(greedy({ logitBias: { 2: 100 } })).toBe(2);
  expect(greedy({ logitBias: { 0: -100, 1: -100 } })).toBe(3);
  const [biased] = drawAll(logits, settings({ logitBias: { 2: 100 } }), [0.5], counts);
  const mass = logits.reduce((sum, value) => sum + Math.exp(value), 0);
  expect(biased).toMatchObject({ id: 2 });
  expect(biased?.logprob).toBeCloseTo(-1 - Math.log(mass), 5);
  expect(biased?.samplingLogprob).toBeCloseTo(0, 5);
});

test('the smallest temperature and repetition penalty give numbers', () => {
  const counts = new TokenCounts();
  counts.add(1, true);
  const logits = [30, -40, 29.9, -35];
  for (const changes of [{}, { topK: 3 }, { topP: 0.9 }, { minP: 0.1 }]) {
    const least = settings({ temperature: 1e-6, repetitionPenalty: 0.01, ...changes });
    const [drawn] = drawAll(logits, least, [0.9], counts);
    expect([drawn?.id, drawn?.samplingLogprob]).toEqual([0, 0]);
  }
});

test('alternatives are the most likely tokens under the raw policy', () => {
  const sampler = new Sampler(6);
  const row = Float32Array.from([0, 4, 1, 4, 3, -2]);
  const prepared = prepareSampling(settings({ temperature: 0, logitBias: { 5: 100 } }), 4);
  expect(sampler.sample(row, 0, Number.NaN, prepared, null, 0)).toBe(true);
  expect(sampler.draw.id).toBe(5);
  expect(sampler.draw.alternatives?.map(({ id }) => id)).toEqual([1, 3, 4, 2]);
  const mass = row.reduce((sum, value) => sum + Math.exp(value), 0);
  expect(sampler.draw.alternatives?.[2]?.logprob).toBeCloseTo(3 - Math.log(mass), 5);
});

test.each([
  ['NaN', [1, Number.NaN, 2]],
  ['+Infinity', [1, Number.POSITIVE_INFINITY, 2]],
  ['nothing finite', [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]],
  ['all NaN', [Number.NaN, Number.NaN, Number.NaN]],
])('a row with %s is refused', (_, values) => {
  const sampler = new Sampler(3);
  for (const parameters of [
    RAW_POLICY,
    settings({ temperature: 0 }),
    settings({ temperature: 0.5, topK: 2 }),
  ])
    expect(
      sampler.sample(Float32Array.from(values), 0, Number.NaN, prepareSampling(parameters), null, 0.5),
    ).toBe(false);
});

test('negativeExp is exp to 1e-10', () => {
  let worst = 0;
  for (let d = 0; d < 60; d += 0.00317) worst = Math.max(worst, Math.abs(negativeExp(d) / Math.exp(-d) - 1));
  expect(worst).toBeLessThan(1e-10);
  expect(negativeExp(Number.POSITIVE_INFINITY)).toBe(0);
  expect(negativeExp(Number.NaN)).toBeNaN();
});
