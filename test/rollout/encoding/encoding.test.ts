// The worker gives what this thread gives, over a real tokenizer.

import { createBackgroundEncoding, inlineEncoding } from '../../../src/rollout/encoding/encoding.js';
import { loadPrompts } from '../../../src/rollout/index.js';
import { readJson } from '../../support/fixtures.js';

const source = {
  tokenizerJson: readJson('models', 'tiny-llama', 'tokenizer.json'),
  tokenizerConfig: readJson('models', 'tiny-llama', 'tokenizer_config.json'),
};
const far = createBackgroundEncoding(source, (error) => {
  throw error;
});
const near = inlineEncoding(far.tokenizer);
afterAll(() => far.close());

const user = (content: string) => [{ role: 'user' as const, content }];
const { observation } = loadPrompts({ prompt: 'search-r1' }).searchR1;

test('long prompts: the same ids, the same refusal', async () => {
  for (const text of ['short', 'the river and the bridge '.repeat(200), '<|im_end|>\ud800\0'.repeat(400)]) {
    expect(await far.prompt(user(text), 100_000)).toEqual(await near.prompt(user(text), 100_000));
    await expect(far.prompt(user(text), 3)).rejects.toMatchObject({ code: 'context_length_exceeded' });
  }
});

test('long passages: the same placing', async () => {
  const passages = ['a', 'b', 'c'].map((id) => ({
    id,
    title: `T${id}`,
    text: 'word '.repeat(500),
    score: 1,
  }));
  const { prefix, suffix } = observation;
  for (const limit of [10, 100, 1000, 5000])
    for (const passageLimit of [null, 50]) {
      const request = { form: observation, prefix, suffix, limit, passageLimit };
      expect(await far.place(passages, request)).toEqual(await near.place(passages, request));
    }
});

test('closed: what comes is still encoded', async () => {
  const encoding = createBackgroundEncoding(source);
  await encoding.prompt(user('x'.repeat(5000)), 100_000);
  await encoding.close();
  expect(await encoding.prompt(user('y'.repeat(5000)), 100_000)).toEqual(
    await near.prompt(user('y'.repeat(5000)), 100_000),
  );
});
