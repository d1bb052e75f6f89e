// Decode steps of many rows, which run over float32 layers where a model has them.

import { LEAST_WIDE } from '../../../src/engine/core/step-model.js';
import type { EngineSettings } from '../../../src/engine/messages.js';
import { fixture } from '../../support/fixtures.js';
import {
  ask,
  loadAdapter,
  openCore,
  type SteppedCore,
  tinyModel,
  turnOptions,
} from '../support/tiny-models.js';

const MANY = LEAST_WIDE + 2;
/** Every token is this one, so that all engines read the same sequences and only log-probabilities tell them apart. */
const FORCED = turnOptions({ maxTokens: 10 }, { temperature: 0, logitBias: { 7: 1000 } });

const ids = (id: number): number[] =>
  Array.from({ length: 4 + (id % 5) }, (_, i) => (i * 31 + id * 97) % 500);

const logprobs = (stepped: SteppedCore, id: number): number[] =>
  stepped.heard(id).steps.map((step) => step.logprob);

async function openVersions(precision: 'fp32' | 'q8', settings: Partial<EngineSettings>) {
  const stepped = await openCore(settings, await tinyModel('tiny-llama', precision));
  const adapters = ['policy', 'critic'].map((name) => fixture('lora', 'tiny-llama', name));
  const versions = ['base'];
  for (const folder of adapters) versions.push(await loadAdapter(stepped, folder));
  return { stepped, versions };
}

/** Log-probabilities of sequences on three versions that end at different times, some holding a slot as a hole. */
async function mixed(precision: 'fp32' | 'q8', maxSequences: number): Promise<number[][]> {
  const { stepped, versions } = await openVersions(precision, { maxSequences });
  for (let id = 0; id < MANY; id++) {
    const options = { ...FORCED, maxTokens: 10 - (id % 4) };
    stepped.send(...ask(id, ids(id), options, { version: versions[id % 3] as string }));
    // Fewer slots than sequences: one after the other.
    if (maxSequences > 1) continue;
    await stepped.settle();
    stepped.send({ kind: 'close', sequence: id });
  }
  await stepped.settle();
  if (maxSequences > 1) expect(stepped.core.profile.idleRows).toBeGreaterThan(0);
  return Array.from({ length: MANY }, (_, id) => logprobs(stepped, id));
}

function meanGap(found: readonly number[][], expected: readonly number[][]): number {
  const gaps = found.flatMap((row, id) => row.map((value, at) => Math.abs(value - expected[id]![at]!)));
  expect(gaps.length).toBeGreaterThan(8 * MANY);
  return gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
}

test('rows on three versions, with holes between them, are near the float32 engine whichever way they run', async () => {
  const exact = await mixed('fp32', 1);
  expect(meanGap(await mixed('fp32', MANY), exact)).toBeLessThan(1e-4);
  const [alone, together] = [await mixed('q8', 1), await mixed('q8', MANY)];
  expect(meanGap(alone, exact)).toBeLessThan(0.05);
  expect(meanGap(together, exact)).toBeLessThan(0.05);
  // Had both run over the same weights in blocks, they would agree far better than that.
  expect(meanGap(together, alone)).toBeGreaterThan(1e-4);
});

test('a model without float32 layers decodes many rows over its blocks', async () => {
  const { graphs, tokenizer } = await tinyModel('tiny-llama', 'q8');
  const rows = async (
    model: { graphs: typeof graphs; tokenizer: typeof tokenizer },
    maxSequences: number,
  ) => {
    const stepped = await openCore({ maxSequences }, model);
    // Short enough to be read over the blocks in any case.
    for (let id = 0; id < MANY; id++) {
      stepped.send(...ask(id, ids(id), FORCED));
      if (maxSequences > 1) continue;
      await stepped.settle();
      stepped.send({ kind: 'close', sequence: id });
    }
    await stepped.settle();
    return Array.from({ length: MANY }, (_, id) => logprobs(stepped, id));
  };
  const blocks = { graphs: { ...graphs, wideSteps: null }, tokenizer };
  expect(meanGap(await rows(blocks, MANY), await rows(blocks, 1))).toBeLessThan(1e-4);
});

test('at the same number of rows the others change no bit', async () => {
  const run = async (others: number) => {
    const { stepped, versions } = await openVersions('q8', { maxSequences: MANY, prefixCacheTokens: 0 });
    for (let id = 0; id < MANY; id++) {
      const prompt = id === 3 ? ids(3) : ids(id + others * 5);
      stepped.send(
        ...ask(id, prompt, turnOptions({ maxTokens: 12 }), { version: versions[id % 3] as string }),
      );
    }
    await stepped.settle();
    return { ids: stepped.heard(3).ids, bits: logprobs(stepped, 3) };
  };
  expect(await run(1)).toEqual(await run(2));
});

test('in lock-step mode every bit is repeated, however many slots are in use', async () => {
  const run = async (order: readonly number[], pause: number) => {
    const { stepped, versions } = await openVersions('q8', { maxSequences: MANY, lockStep: true });
    for (const id of order) {
      const version = versions[1] as string;
      stepped.send(...ask(id, ids(id), turnOptions({ maxTokens: 12 }), { slot: id, version }));
      for (let i = 0; i < pause; i++) await stepped.tick();
    }
    await stepped.settle();
    return { ids: stepped.heard(5).ids, bits: logprobs(stepped, 5) };
  };
  const full = await run(
    Array.from({ length: MANY }, (_, id) => id),
    0,
  );
  expect(full.ids).toHaveLength(12);
  expect(await run([9, 5, 2], 3)).toEqual(full);
  expect(await run([5], 0)).toEqual(full);
});
