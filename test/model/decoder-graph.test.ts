import { DECODERS, fixture, readJson } from '../support/fixtures.js';
import { modelWeights } from '../support/model-weights.js';
import { argMax, buildGraphs, ggufWeights, maxDifference, storedRows } from './support/fixtures.js';
import { openSteps, type StepRunner } from './support/step-runner.js';

interface Sequence {
  readonly tokenIds: number[];
  readonly logprobs: number[];
}

const LOGITS = 2e-4;
const LOGPROBS = 1e-4;

const sequencesOf = (name: string): Sequence[] => readJson('forward', `${name}.json`).sequences;

async function withSteps<T>(
  weights: ReturnType<typeof modelWeights>,
  use: (steps: StepRunner) => Promise<T>,
): Promise<T> {
  const steps = await openSteps(await buildGraphs(weights));
  try {
    return await use(steps);
  } finally {
    steps.close();
  }
}

describe.each([...DECODERS])('%s', (name) => {
  const stored = storedRows('forward', `${name}.safetensors`);

  test('whole sequences give the stored logits, hidden states and log-probabilities', async () => {
    await withSteps(modelWeights(name), async (steps) => {
      for (const [index, { tokenIds, logprobs }] of sequencesOf(name).entries()) {
        steps.reset();
        const result = await steps.step([tokenIds]);
        expect(maxDifference(result.logits, stored(`logits.${index}`))).toBeLessThan(LOGITS);
        expect(maxDifference(result.hidden, stored(`hidden.${index}`))).toBeLessThan(LOGITS);
        const found = tokenIds.slice(1).map((id, at) => result.logits[at]![id]! - result.logsumexp[at]!);
        expect(maxDifference([Float32Array.from(found)], [Float32Array.from(logprobs)])).toBeLessThan(
          LOGPROBS,
        );
      }
    });
  });

  test('chunks over a past give the same logits as one prefill', async () => {
    await withSteps(modelWeights(name), async (steps) => {
      const { tokenIds } = sequencesOf(name)[2]!;
      const logits: Float32Array[] = [];
      for (const [from, to] of [
        [0, 7],
        [7, 8],
        [8, 21],
        [21, 40],
      ] as const)
        logits.push(...(await steps.step([tokenIds.slice(from, to)], { firstRow: 2 })).logits);
      expect(maxDifference(logits, stored('logits.2'))).toBeLessThan(LOGITS);
    });
  });

  test('rows of any length decode together, each as if alone', async () => {
    await withSteps(modelWeights(name), async (steps) => {
      const rows = sequencesOf(name).map((sequence) => sequence.tokenIds);
      const starts = [4, 12, 35];
      for (const [row, ids] of rows.entries())
        await steps.step([ids.slice(0, starts[row])], { firstRow: row });
      const upTo = Math.min(...rows.map((ids, row) => ids.length - starts[row]!));
      for (let step = 0; step < upTo; step++) {
        const result = await steps.step(rows.map((ids, row) => [ids[starts[row]! + step]!]));
        const expected = starts.map((start, row) => stored(`logits.${row}`)[start + step]!);
        expect(maxDifference(result.logits, expected)).toBeLessThan(LOGITS);
      }
    });
  });

  test('several new rows, padded on the right, prefill at once', async () => {
    await withSteps(modelWeights(name), async (steps) => {
      const rows = sequencesOf(name).map((sequence) => sequence.tokenIds);
      const { logits } = await steps.step(rows);
      const expected = rows.flatMap((_, row) => stored(`logits.${row}`));
      expect(maxDifference(logits, expected)).toBeLessThan(LOGITS);
    });
  });

  test('greedy decoding gives the stored continuation', async () => {
    const { prompt, continuation, logprobs, marginTop2 } = readJson('forward', `${name}.json`).decode;
    await withSteps(modelWeights(name), async (steps) => {
      const expected = stored('decode.logits');
      let result = await steps.step([prompt], { selected: [prompt.length - 1] });
      for (const [at, id] of continuation.entries()) {
        expect(maxDifference(result.logits, [expected[at]!])).toBeLessThan(LOGITS);
        expect(Math.abs(result.logits[0]![id]! - result.logsumexp[0]! - logprobs[at])).toBeLessThan(LOGPROBS);
        if (marginTop2[at] > 1e-3) expect(argMax(result.logits[0]!)).toBe(id);
        result = await steps.step([[id]]);
      }
    });
  });

  test('the other spelling of the settings gives the same model', () => {
    expect(modelWeights(name, 'config.other-spelling.json').config).toEqual(modelWeights(name).config);
  });
});

test.each(['f32', 'q8_0', 'q4_1'])('GGUF %s gives the stored logits', async (type) => {
  const stored = storedRows('gguf', `tiny-llama-${type}.expected.safetensors`);
  await withSteps(ggufWeights(fixture('gguf', `tiny-llama-${type}.gguf`)), async (steps) => {
    for (const [index, { tokenIds }] of sequencesOf('tiny-llama').entries()) {
      steps.reset();
      expect(maxDifference((await steps.step([tokenIds])).logits, stored(`logits.${index}`))).toBeLessThan(
        LOGITS,
      );
    }
  });
});

test('bfloat16 weights give the stored logits', async () => {
  const stored = storedRows('forward', 'tiny-llama-bf16.safetensors');
  await withSteps(modelWeights('tiny-llama-bf16'), async (steps) => {
    for (const [index, { tokenIds }] of sequencesOf('tiny-llama').entries()) {
      steps.reset();
      expect(maxDifference((await steps.step([tokenIds])).logits, stored(`logits.${index}`))).toBeLessThan(
        LOGITS,
      );
    }
  });
});
