// The real weights, in one batch: greedy continuations as transformers gives them, and the noise of the int8 engine.

import { homeFolder, loadConfig } from '../../src/config/index.js';
import { type GraphPrecision, preparePrecision } from '../../src/model/index.js';
import { readJson } from '../support/fixtures.js';
import { realModel } from '../support/real-model.js';
import { ask, openCore, type TinyModel, turnOptions } from './support/tiny-models.js';

interface Stored {
  readonly promptIds: number[];
  readonly ids: number[];
  readonly marginTop2: number[];
  readonly logprobs: number[];
}

const cases: Stored[] = readJson('smollm2', 'greedy.json').cases;

async function smollm2(precision: GraphPrecision): Promise<TinyModel> {
  const model = await realModel('smollm2-135m-instruct');
  const graphs = await preparePrecision(homeFolder(loadConfig()), model, precision);
  return { graphs, tokenizer: await model.readTokenizer() };
}

/** Position of the first choice that was too close to call, where any continuation is right. */
function firstNearTie({ marginTop2 }: Stored, margin: number): number {
  const place = marginTop2.findIndex((value) => value <= margin);
  return place < 0 ? marginTop2.length : place;
}

test('fp32: all four stored continuations, decoded together', async () => {
  const stepped = await openCore(
    { maxSequenceTokens: 256, prefillChunkTokens: 64, threads: 2 },
    await smollm2('fp32'),
  );
  const options = turnOptions({ maxTokens: 48 }, { temperature: 0 });
  for (const [id, { promptIds }] of cases.entries()) stepped.send(...ask(id, promptIds, options));
  await stepped.settle();
  for (const [id, stored] of cases.entries()) {
    const { ids, steps } = stepped.heard(id);
    const certain = firstNearTie(stored, 1e-2);
    expect(certain).toBeGreaterThan(5);
    expect(ids.slice(0, certain)).toEqual(stored.ids.slice(0, certain));
    for (let i = 0; i < certain; i++)
      expect(Math.abs((steps[i]?.logprob as number) - (stored.logprobs[i] as number))).toBeLessThan(1e-3);
  }
}, 300_000);

test('q8: along the stored continuations, log-probabilities lie within the noise of int8 activations', async () => {
  const stepped = await openCore({ maxSequenceTokens: 256, prefillChunkTokens: 64 }, await smollm2('q8'));
  const options = turnOptions({ maxTokens: 1 }, { temperature: 0 });
  const differences: number[] = [];
  let agreed = 0;
  for (const [which, { promptIds, ids, logprobs }] of cases.entries())
    for (let at = 0; at < 24; at++) {
      const id = which * 100 + at;
      const forced = { ...options.sampling, logitBias: { [ids[at] as number]: 1000 } };
      // The keys and values of the prefix are still there from the position before.
      stepped.send(
        ...ask(id, [...promptIds, ...ids.slice(0, at)], { ...options, sampling: forced, topLogprobs: 1 }),
      );
      await stepped.settle();
      const [step] = stepped.heard(id).steps;
      differences.push(Math.abs((step?.logprob as number) - (logprobs[at] as number)));
      if (step?.alternatives?.[0]?.id === ids[at]) agreed++;
      stepped.send({ kind: 'close', sequence: id });
    }
  const mean = differences.reduce((sum, value) => sum + value, 0) / differences.length;
  expect(mean).toBeLessThan(0.06);
  expect(agreed / differences.length).toBeGreaterThan(0.9);
}, 300_000);
