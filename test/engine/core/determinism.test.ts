import type { SamplingParameters } from '../../../src/engine/generator.js';
import { readJson } from '../../support/fixtures.js';
import { ask, openCore, type SteppedCore, tinyModel, turnOptions } from '../support/tiny-models.js';

const { prompt } = readJson('forward', 'tiny-llama.json').decode as { prompt: number[] };

const promptOf = (id: number): number[] =>
  Array.from({ length: 5 + ((id * 7) % 40) }, (_, i) => (i * 31 + id * 97 + 11) % 500);

const logprobs = (stepped: SteppedCore, id: number): number[] =>
  stepped.heard(id).steps.map((step) => step.logprob);

describe('fp32', () => {
  const kinds: Partial<SamplingParameters>[] = [
    {},
    { temperature: 0.7, topP: 0.9 },
    { temperature: 1.3, topK: 20, minP: 0.02 },
    { repetitionPenalty: 1.2, presencePenalty: 0.5 },
  ];
  const options = (id: number) => turnOptions({ maxTokens: 20 }, kinds[id % kinds.length]);

  test('the same seed gives the same text alone and among sequences that come and go', async () => {
    const batch = await openCore();
    const pending = Array.from({ length: 12 }, (_, i) => i + 1);
    const running: number[] = [];
    while (pending.length + running.length > 0) {
      for (const id of [...running])
        if (batch.heard(id).end !== null) {
          batch.send({ kind: 'close', sequence: id });
          running.splice(running.indexOf(id), 1);
        }
      if (running.length < 4 && pending.length > 0) {
        const id = pending.shift() as number;
        running.push(id);
        batch.send(...ask(id, promptOf(id), options(id)));
      }
      await batch.tick();
    }
    const texts = new Set<string>();
    for (let id = 1; id <= 12; id++) {
      const alone = await openCore({ prefillChunkTokens: 64 });
      alone.send(...ask(id, promptOf(id), options(id)));
      await alone.settle();
      expect(batch.heard(id).ids).toEqual(alone.heard(id).ids);
      logprobs(alone, id).forEach((value, i) => {
        expect(Math.abs(value - (logprobs(batch, id)[i] as number))).toBeLessThan(1e-4);
      });
      texts.add(alone.heard(id).text);
    }
    expect(texts.size).toBeGreaterThan(10);
  });

  test('another seed gives another text', async () => {
    const stepped = await openCore();
    for (const id of [1, 2, 3]) stepped.send(...ask(id, prompt, turnOptions({ maxTokens: 20 })));
    await stepped.settle();
    expect(new Set([1, 2, 3].map((id) => stepped.heard(id).text)).size).toBe(3);
  });
});

describe('importance ratio', () => {
  test('with other settings the raw log-probability keeps its meaning and the sampling one is exact', async () => {
    const cold = { temperature: 0.6 };
    const stepped = await openCore();
    stepped.send(...ask(1, prompt, turnOptions({ maxTokens: 20 }, cold)));
    await stepped.settle();
    const { ids, steps } = stepped.heard(1);
    // Forced along the same ids, the raw policy gives the same raw log-probabilities.
    const forced = await openCore();
    for (const [i, id] of ids.entries()) {
      const bias = turnOptions({ maxTokens: 1 }, { temperature: 0, logitBias: { [id]: 1000 } });
      forced.send(...ask(i, [...prompt, ...ids.slice(0, i)], bias));
      await forced.settle();
      expect(forced.heard(i).ids).toEqual([id]);
      const ratio = Math.exp((forced.heard(i).steps[0]?.logprob as number) - (steps[i]?.logprob as number));
      expect(Math.abs(ratio - 1)).toBeLessThan(1e-3);
      forced.send({ kind: 'close', sequence: i });
    }
    expect(steps.some((step) => Math.abs(step.samplingLogprob - step.logprob) > 0.1)).toBe(true);
  });
});

describe.each(['fp32', 'q8'] as const)('%s', (precision) => {
  test('at the same batch size the other rows change no bit', async () => {
    const model = await tinyModel('tiny-llama', precision);
    const run = async (partner: number) => {
      const stepped = await openCore({ prefixCacheTokens: 0 }, model);
      stepped.send(...ask(1, prompt, turnOptions({ maxTokens: 30 })));
      stepped.send(...ask(2, promptOf(partner).slice(0, 5), turnOptions({ maxTokens: 30 })));
      await stepped.settle();
      return { ids: stepped.heard(1).ids, bits: logprobs(stepped, 1) };
    };
    expect(await run(7)).toEqual(await run(9));
  });

  /** Rollouts of two turns in lock-step; `pauses`: rounds that pass before each one's second turn. */
  async function lockStep(order: readonly number[], pauses: readonly number[], alone?: number) {
    const stepped = await openCore(
      { lockStep: true, prefillChunkTokens: 16 },
      await tinyModel('tiny-llama', precision),
    );
    const shared = Array.from({ length: 40 }, (_, i) => (i * 13) % 500);
    const ids = order.filter((id) => alone === undefined || id === alone);
    for (const id of ids) {
      stepped.send(...ask(id, [...shared, id % 2], turnOptions({ maxTokens: 12 }), { slot: id }));
      for (let i = 0; i < (pauses[id] as number); i++) await stepped.tick();
    }
    await stepped.settle();
    for (const id of ids) {
      stepped.send({ kind: 'append', sequence: id, ids: Int32Array.from(promptOf(id)) });
      stepped.send({ kind: 'generate', sequence: id, turn: 1, options: turnOptions({ maxTokens: 12 }) });
      for (let i = 0; i < (pauses[id] as number); i++) await stepped.tick();
    }
    await stepped.settle();
    return {
      stepped,
      result: ids.map((id) => ({ id, ids: stepped.heard(id).ids, bits: logprobs(stepped, id) })),
    };
  }

  test('in lock-step mode every bit is repeated, whatever the timing, the order and the company', async () => {
    const first = await lockStep([0, 1, 2, 3], [0, 0, 0, 0]);
    expect(first.stepped.core.profile.sharedTokens).toBe(3 * 32);
    const other = await lockStep([2, 0, 3, 1], [3, 5, 1, 7]);
    expect(other.stepped.core.profile.idleRows).toBeGreaterThan(first.stepped.core.profile.idleRows);
    const byId = [...other.result].sort((a, b) => a.id - b.id);
    expect(byId).toEqual(first.result);
    const { result } = await lockStep([0, 1, 2, 3], [0, 0, 0, 0], 2);
    expect(result[0]).toEqual(first.result[2]);
  });

  test('in lock-step mode a prompt that was shared but for its last token has the bits of one that was read', async () => {
    const whole = Array.from({ length: 33 }, (_, i) => (i * 13) % 500);
    // So many slots that steps and short reads take other kernels.
    const settings = { lockStep: true, prefillChunkTokens: 16, maxSequences: 16 };
    const run = async (shared: boolean) => {
      const stepped = await openCore(settings, await tinyModel('tiny-llama', precision));
      for (const id of shared ? [0, 1] : [1]) {
        stepped.send(...ask(id, whole, turnOptions({ maxTokens: 12 }), { slot: id }));
        await stepped.settle();
      }
      expect(stepped.core.profile.sharedTokens).toBe(shared ? 32 : 0);
      return { ids: stepped.heard(1).ids, bits: logprobs(stepped, 1) };
    };
    expect(await run(true)).toEqual(await run(false));
  });
});

test('in lock-step mode slots go by the order of opening, and a wanted one is waited for', async () => {
  const stepped = await openCore({ lockStep: true });
  const options = turnOptions({ maxTokens: 4 });
  stepped.send(
    ...ask(1, prompt, options, { slot: 2 }),
    ...ask(2, prompt, options),
    ...ask(3, prompt, options),
  );
  stepped.send(...ask(4, prompt, options, { slot: 2 }));
  await stepped.settle();
  expect([1, 2, 3, 4].map((id) => stepped.heard(id).ids.length)).toEqual([4, 4, 4, 0]);
  stepped.send({ kind: 'close', sequence: 1 });
  await stepped.settle();
  expect(stepped.heard(4).ids).toHaveLength(4);
});

describe('q8 with its cache in 8 bits and float32 products for prompts', () => {
  const longer = Array.from({ length: 70 }, (_, i) => (i * 29 + 5) % 500);

  test('prompts that take turns in the staging slot are read as if alone', async () => {
    const model = await tinyModel('tiny-llama', 'q8');
    const alone = async (id: number, ids: readonly number[]) => {
      const stepped = await openCore({ maxSequences: 1, prefixCacheTokens: 0 }, model);
      stepped.send(...ask(id, ids, turnOptions({ maxTokens: 1 })));
      await stepped.settle();
      return logprobs(stepped, id);
    };
    const both = [longer, longer.map((id) => (id * 3 + 1) % 500)];
    const stepped = await openCore({ prefixCacheTokens: 0 }, model);
    for (const [id, ids] of both.entries()) stepped.send(...ask(id, ids, turnOptions({ maxTokens: 1 })));
    await stepped.settle();
    expect(stepped.core.profile.prefillRuns).toBe(10);
    for (const [id, ids] of both.entries()) expect(logprobs(stepped, id)).toEqual(await alone(id, ids));
  });

  test('a turn that was cut back and goes on otherwise is the sequence read at once', async () => {
    const model = await tinyModel('tiny-llama', 'q8');
    const greedy = turnOptions({ maxTokens: 12 }, { temperature: 0 });
    const stepped = await openCore({}, model);
    stepped.send(...ask(1, longer.slice(0, 40), greedy));
    while (stepped.heard(1).ids.length < 6) await stepped.tick();
    stepped.send({ kind: 'cancel', sequence: 1, turn: 0, length: 42 });
    stepped.send({ kind: 'append', sequence: 1, ids: Int32Array.from(longer.slice(0, 20)) });
    stepped.send({ kind: 'generate', sequence: 1, turn: 1, options: greedy });
    await stepped.settle();
    const whole = await openCore({}, model);
    const kept = stepped.heard(1).ids.slice(0, 2);
    whole.send(...ask(1, [...longer.slice(0, 40), ...kept, ...longer.slice(0, 20)], greedy));
    await whole.settle();
    const [found, expected] = [logprobs(stepped, 1).slice(-12), logprobs(whole, 1)];
    expect(Math.abs((found[0] as number) - (expected[0] as number))).toBeLessThan(0.2);
  });
});
