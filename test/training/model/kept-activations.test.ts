import type { DecoderConfig } from '../../../src/model/index.js';
import { BlockPlanner } from '../../../src/training/model/attention-blocks.js';
import { planKept } from '../../../src/training/model/kept-activations.js';

const MIB = 2 ** 20;

/** The shape of SmolLM2-135M. */
const config = {
  layers: 30,
  hiddenSize: 576,
  intermediateSize: 1536,
  heads: 9,
  kvHeads: 3,
  headDim: 64,
  qkNorm: false,
} as DecoderConfig;

const plan = (lengths: readonly number[], budget: number) => {
  let start = 0;
  const spans = lengths.map((length) => {
    start += length;
    return { start: start - length, length };
  });
  return planKept(config, start, new BlockPlanner(3).plan(spans), budget);
};

test('all is kept where there is room', () => {
  expect(plan([512], 1024 * MIB)).toEqual({ layersFrom: 0, probabilitiesFrom: 0, probabilitiesAgain: true });
});

test('of long sequences the probabilities are computed again, but for one layer', () => {
  const { layersFrom, probabilitiesFrom, probabilitiesAgain } = plan([4096], Number.POSITIVE_INFINITY);
  expect(layersFrom).toBe(0);
  // 9 heads, 128 queries and up to 4,096 keys a block: 298 MiB a layer.
  expect(probabilitiesFrom).toBe(29);
  expect(probabilitiesAgain).toBe(false);
});

test('where layers do not fit the first are run again, and no probabilities are kept', () => {
  // Inputs of 31 layers take 35 MiB, each layer 10.3 MiB.
  expect(plan([512], 200 * MIB)).toEqual({ layersFrom: 14, probabilitiesFrom: 30, probabilitiesAgain: true });
  expect(plan([512], 0)).toEqual({ layersFrom: 30, probabilitiesFrom: 30, probabilitiesAgain: true });
});

test('blocks cover each sequence with the keys up to their last query', () => {
  const blocks = new BlockPlanner(1).plan([
    { start: 0, length: 130 },
    { start: 130, length: 3 },
  ]);
  expect(blocks.map(({ start, queries, keysStart, keys }) => [start, queries, keysStart, keys])).toEqual([
    [0, 128, 0, 128],
    [128, 2, 0, 130],
    [130, 3, 130, 3],
  ]);
  const hidden = Number.NEGATIVE_INFINITY;
  expect([...(blocks[2]!.mask.data as Float32Array)]).toEqual([0, hidden, hidden, 0, 0, hidden, 0, 0, 0]);
});
