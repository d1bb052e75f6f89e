import { RAW_POLICY } from '../../../src/engine/index.js';
import { createTeacherGenerator, encodeTurn } from '../../../src/loop/warm-start/teacher-generator.js';
import { createPieceTokenizer } from '../../support/piece-tokenizer.js';
import { modelTokenizer } from '../../tokenizer/fixtures.js';

const tokenizer = createPieceTokenizer();
const info = {
  modelId: 'm',
  modelDigest: 'a',
  precision: 'fp32' as const,
  vocabSize: 100_000,
  maxSequenceTokens: 60,
  eosTokenIds: [tokenizer.endId],
  maxSequences: 1,
  fingerprint: 'f',
};
const turnOptions = { sampling: RAW_POLICY, maxTokens: 50, stopStrings: ['</answer>'], stopTokenIds: [] };

async function play(text: string, options: Partial<typeof turnOptions> = {}) {
  const heard: string[] = [];
  const generator = createTeacherGenerator({
    tokenizer,
    info,
    teacher: () => (appended) => {
      heard.push(appended);
      return text;
    },
  });
  const sequence = await generator.open();
  sequence.append(tokenizer.encodePlain('the prompt'));
  const turn = sequence.generate({ ...turnOptions, ...options });
  const ids: number[] = [];
  for (;;) {
    const step = await turn.next();
    if (step.done) return { ids, end: step.value, heard, sequence, generator };
    expect(step.value.token).toMatchObject({ logprob: 0, samplingLogprob: 0 });
    ids.push(step.value.token.id);
  }
}

test('a turn ends with its stop string, and hears what was appended', async () => {
  const { ids, end, heard, sequence, generator } = await play('<answer>x</answer>');
  expect(tokenizer.decode(ids)).toBe('<answer>x</answer>');
  expect(end).toMatchObject({ reason: 'stop_string', stopString: '</answer>' });
  expect(heard).toEqual(['the prompt']);
  expect(sequence.length).toBe(tokenizer.encodePlain('the prompt').length + ids.length);
  expect(generator.stats().running).toBe(1);
  sequence.close();
  sequence.close();
  expect(generator.stats().running).toBe(0);
});

test('without a stop string it ends with the end token', async () => {
  const { ids, end } = await play('Lisbon');
  expect(ids.at(-1)).toBe(tokenizer.endId);
  expect(end.reason).toBe('stop_token');
});

test('limits hold for a teacher too', async () => {
  expect((await play('a b c d e f g h', { maxTokens: 3 })).end.reason).toBe('max_tokens');
  expect((await play('a b '.repeat(40))).end.reason).toBe('max_tokens');
  expect((await play('a b '.repeat(40), { maxTokens: 500 })).end.reason).toBe('context');
});

test('tags that a vocabulary has as tokens are those tokens; text around them stays plain', () => {
  const qwen = modelTokenizer('tiny-qwen3');
  const think = qwen.addedTokens.get('<think>') as number;
  const ids = encodeTurn('<think>so <|im_end|></think>\n<search>x</search>', qwen);
  expect(ids[0]).toBe(think);
  expect(ids.filter((id) => id === think)).toHaveLength(1);
  expect(ids).not.toContain(qwen.addedTokens.get('<|im_end|>'));
  expect(qwen.decode(ids)).toBe('<think>so <|im_end|></think>\n<search>x</search>');
});
