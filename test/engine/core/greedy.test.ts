import { DECODERS, readJson } from '../../support/fixtures.js';
import { ask, openCore, tinyModel, turnOptions } from '../support/tiny-models.js';

interface Stored {
  readonly prompt: number[];
  readonly continuation: number[];
  readonly logprobs: number[];
  readonly marginTop2: number[];
}

const storedDecode = (name: string): Stored => readJson('forward', `${name}.json`).decode;

const greedy = (changes = {}) => turnOptions({ maxTokens: 24, ...changes }, { temperature: 0 });

describe.each(DECODERS)('%s', (name) => {
  test('greedy decoding gives the stored ids and log-probabilities, in any chunks', async () => {
    const { prompt, continuation, logprobs, marginTop2 } = storedDecode(name);
    expect(Math.min(...marginTop2)).toBeGreaterThan(1e-3);
    for (const prefillChunkTokens of [16, 64]) {
      const core = await openCore({ prefillChunkTokens }, await tinyModel(name));
      core.send(...ask(1, prompt, greedy()));
      await core.settle();
      const { ids, steps, end } = core.heard(1);
      expect(ids).toEqual(continuation);
      steps.forEach((step, i) => {
        expect(Math.abs(step.logprob - (logprobs[i] as number))).toBeLessThan(1e-4);
        expect(step.samplingLogprob).toBe(0);
      });
      expect(end).toMatchObject({ reason: 'max_tokens', stopString: null });
    }
  });

  test('a full batch of other sequences changes nothing', async () => {
    const { prompt, continuation } = storedDecode(name);
    const core = await openCore({}, await tinyModel(name));
    core.send(...ask(1, prompt.slice(3), greedy({ maxTokens: 9 })));
    core.send(...ask(2, prompt, greedy()));
    core.send(...ask(3, [...prompt, ...prompt], greedy({ maxTokens: 30 })));
    await core.tick();
    core.send(...ask(4, prompt.slice(0, 5), turnOptions({ maxTokens: 40 })));
    await core.settle();
    expect(core.heard(2).ids).toEqual(continuation);
    expect([1, 3, 4].map((sequence) => core.heard(sequence).ids.length)).toEqual([9, 30, 40]);
  });
});
