import { type SampledToken, scoreGivenTokens } from '../../src/engine/index.js';
import { readJson } from '../support/fixtures.js';
import { startEngine, turnOptions } from './support/tiny-models.js';

jest.setTimeout(60_000);

const { prompt } = readJson('forward', 'tiny-llama.json').decode as { prompt: number[] };
const COUNT = 12;

test('given tokens get the log-probabilities that they were sampled with, likely or not', async () => {
  const engine = await startEngine();
  const first = await engine.open();
  first.append(prompt);
  const sampled: SampledToken[] = [];
  // Hot enough for tokens that are not the likeliest.
  const turn = first.generate(turnOptions({ maxTokens: COUNT }, { temperature: 1.5 }));
  for await (const { token } of turn) sampled.push(token);
  first.close();

  const given = [...prompt, ...sampled.map(({ id }) => id)];
  const again = await engine.open();
  const found: { at: number; token: SampledToken }[] = [];
  for await (const item of scoreGivenTokens(again, given, (at) => at >= prompt.length, 1)) found.push(item);
  again.close();

  expect(found.map(({ at }) => at)).toEqual(sampled.map((_, i) => prompt.length + i));
  for (const [i, { token }] of found.entries()) {
    expect(token.id).toBe(sampled[i]?.id);
    expect(token.logprob).toBeCloseTo(sampled[i]?.logprob as number, 4);
  }
  // Alternatives do not see the force either.
  expect(found.some(({ token }) => token.alternatives?.[0]?.id !== token.id)).toBe(true);
});

test('tokens that are not scored are read in between', async () => {
  const engine = await startEngine();
  const scores = async (isScored: (at: number) => boolean): Promise<Map<number, number>> => {
    const sequence = await engine.open();
    const found = new Map<number, number>();
    for await (const { at, token } of scoreGivenTokens(sequence, prompt, isScored))
      found.set(at, token.logprob);
    sequence.close();
    return found;
  };
  const all = await scores((at) => at > 0);
  const some = await scores((at) => at === 2 || at === prompt.length - 1);
  expect([...some.keys()]).toEqual([2, prompt.length - 1]);
  for (const [at, logprob] of some) expect(logprob).toBeCloseTo(all.get(at) as number, 4);
});
