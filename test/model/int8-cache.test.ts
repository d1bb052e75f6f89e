// Keys and values in 8 bits: the same steps over a quarter of the memory.

import { cacheSteps, type EngineGraphs, layOutAdapters } from '../../src/model/index.js';
import { DECODERS, readJson } from '../support/fixtures.js';
import { modelWeights } from '../support/model-weights.js';
import { buildGraphs, maxDifference } from './support/fixtures.js';
import { openSteps } from './support/step-runner.js';

const CAPACITY = 64;

const sequencesOf = (name: string): number[][] =>
  readJson('forward', `${name}.json`).sequences.map((item: { tokenIds: number[] }) => item.tokenIds);

/** Steps found from a float32 cache that holds the longest stored sequence. */
async function stepsOf(graphs: EngineGraphs, ids: readonly number[], margin: number) {
  const { layers, kvHeads, headDim } = graphs.config;
  const runner = await openSteps(graphs, { rows: 1, capacity: CAPACITY });
  await runner.step([ids]);
  const found = (layer: number, kind: 'key' | 'value') =>
    cacheSteps(
      {
        data: runner.cache(layer, kind) as Float32Array,
        kvHeads,
        headDim,
        capacity: CAPACITY,
        length: ids.length,
        rotated: kind === 'key',
      },
      margin,
    );
  const steps = Array.from({ length: layers }, (_, layer) => ({
    key: found(layer, 'key'),
    value: found(layer, 'value'),
  }));
  runner.close();
  return steps;
}

test('steps are the largest magnitudes of each channel, with a margin', () => {
  // Two heads of two channels, capacity 3, of which 2 positions are used.
  const data = Float32Array.of(1, -2, -3, 1, 99, 99, 0, 5, 0, -6, 99, 99);
  const sample = { data, kvHeads: 2, capacity: 3, headDim: 2, length: 2 };
  const magnitudes = (rotated: boolean) =>
    [...cacheSteps({ ...sample, rotated }, 2)].map((step) => step * 127);
  for (const [channel, largest] of [6, 4, 2e-3, 12].entries())
    expect(magnitudes(false)[channel]).toBeCloseTo(largest, 5);
  // A pair that turns may put all of its length into either channel.
  for (const [channel, largest] of [Math.hypot(3, 1), Math.hypot(3, 1), 6, 6].entries())
    expect(magnitudes(true)[channel]).toBeCloseTo(2 * largest, 5);
});

describe.each([...DECODERS])('%s', (name) => {
  test.each([false, true])('adds less than 8-bit weights do (adapter inputs: %s)', async (adapters) => {
    const graphs = await buildGraphs(modelWeights(name), 'q8');
    const sequences = sequencesOf(name);
    const int8Steps = await stepsOf(graphs, sequences[2]!, 1.5);
    const exact = await openSteps(graphs, { rows: 1, capacity: CAPACITY });
    const rounded = await openSteps(graphs, { rows: 1, capacity: CAPACITY, int8Steps, adapters });
    const base = adapters ? { adapters: { layout: layOutAdapters(graphs.config, []), rows: [null] } } : {};
    const sizes: number[] = [];
    for (const ids of sequences) {
      exact.reset();
      rounded.reset();
      const [a, b] = [await exact.step([ids]), await rounded.step([ids], base)];
      for (const [at, id] of ids.slice(1).entries())
        sizes.push(Math.abs(a.logits[at]![id]! - a.logsumexp[at]! - (b.logits[at]![id]! - b.logsumexp[at]!)));
    }
    expect(sizes.reduce((sum, size) => sum + size, 0) / sizes.length).toBeLessThan(0.05);
    expect(Math.max(...sizes)).toBeLessThan(0.4);
    exact.close();
    rounded.close();
  });

  test('a sequence that grows token by token is the sequence read at once', async () => {
    const graphs = await buildGraphs(modelWeights(name), 'q8');
    const ids = sequencesOf(name)[1]!;
    const steps = await openSteps(graphs, {
      rows: 2,
      capacity: CAPACITY,
      int8Steps: await stepsOf(graphs, ids, 1.5),
    });
    const whole = await steps.step([ids]);
    const grown = [];
    for (const id of ids) grown.push(...(await steps.step([[id]], { firstRow: 1 })).logits);
    expect(maxDifference(grown, whole.logits)).toBeLessThan(1e-3);
    steps.close();
  });
});
