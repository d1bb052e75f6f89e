// What is streamed: never a tag, never half a character, never what a stop string forbids, and always with
// the tokens it came from.

import fc from 'fast-check';
import { NotFoundError } from '../../src/errors.js';
import type { RolloutEvent, RolloutRequest } from '../../src/rollout/index.js';
import { createPieceTokenizer, cutInto, type PieceTokenizer } from '../support/piece-tokenizer.js';
import {
  answerText,
  answerTokens,
  collect,
  createKit,
  doneOf,
  eventsOf,
  joined,
  reasoningText,
} from '../support/rollout-kit.js';

const fragments = fc
  .array(
    fc.constantFrom(
      '<think>',
      '</think>',
      '<search>',
      '</search>',
      '<answer>',
      '</answer>',
      '<information>',
      '</information>',
      '<',
      '</',
      'answer',
      ' ',
      '\n',
      'Lisbon',
      'é',
      '🫠',
      'नम',
      'STOP',
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));
const cuts = fc.array(fc.nat({ max: 200 }), { maxLength: 20 });

type Request = NonNullable<Parameters<ReturnType<typeof createKit>['events']>[0]>;

async function eventsOfCut(
  texts: readonly string[],
  cut: readonly number[],
  request: Request,
): Promise<RolloutEvent[]> {
  const tokenizer = createPieceTokenizer();
  const kit = createKit({
    tokenizer,
    turns: texts.map((text) => [...cutInto(tokenizer, text, cut), tokenizer.endId]),
  });
  return kit.events(request);
}

describe.each(['search-r1', 'cot', 'direct', 'rag', 'chat'] as const)('method %s', (method) => {
  test('any cut of the sampled text into tokens gives the same events, and deltas join to the answer', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fragments, { minLength: 1, maxLength: 4 }),
        cuts,
        fc.boolean(),
        fc.subarray(['STOP', 'on<'], { minLength: 0 }),
        async (texts, cut, forceAnswer, stop) => {
          const request = { method, forceAnswer, actionBudget: 2, stop };
          const whole = await eventsOfCut(texts, [], request);
          const inPieces = await eventsOfCut(texts, cut, request);
          expect(joined(inPieces)).toEqual(joined(whole));
          const [a, b] = [doneOf(inPieces), doneOf(whole)];
          expect([a.answer, a.finish, a.record.stop, a.record.answer]).toEqual([
            b.answer,
            b.finish,
            b.record.stop,
            b.record.answer,
          ]);
        },
      ),
      { numRuns: 40 },
    );
  });

  test('no delta shows a tag or a broken character; tokens belong to the text beside them', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fragments, { minLength: 1, maxLength: 4 }),
        cuts,
        fc.boolean(),
        async (texts, cut, forceAnswer) => {
          const tokenizer = createPieceTokenizer();
          const kit = createKit({ tokenizer, turns: texts.map((text) => cutInto(tokenizer, text, cut)) });
          const events = await kit.events({ method, forceAnswer, actionBudget: 2 });
          const { record, answer, usage } = doneOf(events);
          expect(answerText(events) + reasoningText(events)).not.toContain('\ufffd');
          if (method !== 'chat') {
            expect(reasoningText(events)).not.toMatch(/<\/?(think|search|information|answer)>/);
            expect(answer).not.toMatch(/<\/?(think|search|information|answer)>/);
            expect(answer).toBe(answer.trim());
          }
          const tokens = answerTokens(events);
          checkTokens(
            tokenizer,
            record.tokenIds,
            tokens.map(({ id }) => id),
            record.answer ?? '',
          );
          for (const { id, logprob } of tokens)
            expect(record.logprobs[record.tokenIds.lastIndexOf(id)]).toBe(logprob);
          expect(usage.completionTokens).toBe(
            record.origin.filter((origin) => origin.startsWith('policy')).length,
          );
        },
      ),
      { numRuns: 40 },
    );
  });
});

/** The tokens are a part of the rollout in order, and the answer's characters are among theirs, in order. */
function checkTokens(
  tokenizer: PieceTokenizer,
  all: readonly number[],
  given: readonly number[],
  answer: string,
): void {
  let at = 0;
  for (const id of given) {
    at = all.indexOf(id, at) + 1;
    expect(at).toBeGreaterThan(0);
  }
  let rest = tokenizer.decode(given);
  for (const character of answer.replaceAll(/\s/g, '')) {
    const found = rest.indexOf(character);
    expect(found).toBeGreaterThanOrEqual(0);
    rest = rest.slice(found + character.length);
  }
}

test('a character spread over several tokens comes once, whole, with all its tokens', async () => {
  const tokenizer = createPieceTokenizer();
  const bytes = Buffer.from(' नok');
  const ids = [
    tokenizer.piece('<answer>'),
    tokenizer.piece(bytes.subarray(0, 3)),
    tokenizer.piece(bytes.subarray(3)),
    tokenizer.piece('</answer>'),
  ];
  const kit = createKit({ tokenizer, turns: [ids] });
  const events = await kit.events({ forceAnswer: true });
  expect(eventsOf(events, 'answer.delta')).toMatchObject([
    { text: 'नok', tokens: [{ id: ids[1] }, { id: ids[2] }] },
  ]);
});

test('a truly invalid last byte is still given', async () => {
  const tokenizer = createPieceTokenizer();
  const kit = createKit({
    tokenizer,
    turns: [[tokenizer.piece('ok'), tokenizer.piece(Uint8Array.of(0xf0))]],
  });
  expect(doneOf(await kit.events({ method: 'chat' })).answer).toBe('ok\ufffd');
});

test('taking a tag away never makes another', async () => {
  const kit = createKit({ turns: ['<<think>think>x <<answer>', 'search>'] });
  const events = await kit.events({ actionBudget: 1 });
  expect(reasoningText(events)).toBe('< think>x <\nsearch>');
  const chat = createKit({ turns: ['a <<think>x</think>think>'] });
  expect(answerText(await chat.events({ method: 'chat' }))).toBe('a < think>');
});

test('an answer is streamed while it is written', async () => {
  const kit = createKit({ turns: ['<answer>one two three four</answer>'] });
  const deltas = eventsOf(await kit.events({ forceAnswer: true }), 'answer.delta');
  expect(deltas.map(({ text }) => text)).toEqual(['one', ' two', ' three', ' four']);
  for (const { text, tokens } of deltas) expect(kit.tokenizer.decode(tokens.map(({ id }) => id))).toBe(text);
});

test('white space at both ends is held back, white space inside is not lost', async () => {
  const kit = createKit({ turns: ['<answer>\n\n one  \n two \n </answer>'] });
  const events = await kit.events({ forceAnswer: true });
  expect(answerText(events)).toBe('one  \n two');
  expect(doneOf(events).record.answer).toBe('one  \n two');
});

test('the answer’s tokens are those of its text, not of its tags', async () => {
  const tokenizer = createPieceTokenizer();
  const ids = ['<ans', 'wer>', 'Lis', 'bon</', 'answer>'].map(tokenizer.piece);
  const kit = createKit({ tokenizer, turns: [ids] });
  expect(answerTokens(await kit.events({ forceAnswer: true })).map(({ id }) => id)).toEqual([ids[2], ids[3]]);
});

describe('stop strings of the request', () => {
  const stopped = async (pieces: string[], stop: string[], method: 'chat' | 'search-r1' = 'chat') => {
    const tokenizer = createPieceTokenizer();
    const kit = createKit({ tokenizer, turns: [pieces.map(tokenizer.piece)] });
    const events = await kit.events({ method, stop, forceAnswer: true });
    return { events, kit, ...doneOf(events) };
  };

  test('no part of one is shown before the match is complete', async () => {
    const { answer, finish, usage } = await stopped(['DEF', 'G', 'HI', 'J', 'more'], ['DEFGHIJ']);
    expect({ answer, finish, tokens: usage.completionTokens }).toEqual({
      answer: '',
      finish: 'stop',
      tokens: 4,
    });
  });

  test('one that crosses tokens matches, and sampling stops', async () => {
    const { answer, usage } = await stopped(['alpha ', 'beta', ' gam', 'ma', ' delta'], ['beta gamma']);
    expect(answer).toBe('alpha ');
    expect(usage.completionTokens).toBe(4);
  });

  test('text behind it in the same token never comes', async () => {
    const { answer, events, record } = await stopped(['four, ', 'five, six'], ['five']);
    expect(answer).toBe('four, ');
    expect(answerTokens(events)).toHaveLength(1);
    expect(record).toMatchObject({ stop: 'stop', answer: 'four, ' });
  });

  test('they act on the answer only, not on reasoning or queries', async () => {
    const { answer, record } = await stopped(
      ['<think>', 'END', '</think>', '<answer>', 'a END b', '</answer>'],
      ['END'],
      'search-r1',
    );
    expect(answer).toBe('a');
    expect(record.stop).toBe('stop');
  });

  test('stop tokens too act on the answer only, and are not shown', async () => {
    const tokenizer = createPieceTokenizer();
    const pieces = ['<think>', '!', '</think>', '<answer>', 'a', '!', 'b', '</answer>'];
    const kit = createKit({ tokenizer, turns: [pieces.map(tokenizer.piece)] });
    const { answer, finish, usage } = doneOf(
      await kit.events({ stopTokenIds: [tokenizer.piece('!')], forceAnswer: true }),
    );
    expect({ answer, finish, tokens: usage.completionTokens }).toEqual({
      answer: 'a',
      finish: 'stop',
      tokens: 6,
    });
  });
});

describe('an answer that was shown cannot be taken back', () => {
  test.each([
    ['never closed', '<answer>Lisbon', 'stop'],
    ['tags nested in it', '<answer>Lisbon <search>x</search>', 'stop'],
    ['cut by the turn’s limit', `<answer>${'Lisbon '.repeat(40)}`, 'length'],
  ] as const)('%s: the rollout ends with it', async (_name, text, finish) => {
    const kit = createKit({ turns: [text, '<answer>Porto</answer>'], config: { turnTokens: 30 } });
    const done = doneOf(await kit.events({ forceAnswer: true }));
    expect(done.answer).toMatch(/^Lisbon/);
    expect(done.answer).not.toContain('Porto');
    expect(done.finish).toBe(finish);
    expect(done.record).toMatchObject({ stop: 'stop', invalidActions: 1, answer: done.answer });
  });
});

test('control tokens in sampled text are recorded and not shown', async () => {
  const tokenizer = createPieceTokenizer();
  const ids = [tokenizer.piece('a'), 1, tokenizer.piece('b'), tokenizer.endId];
  const kit = createKit({ tokenizer, turns: [ids] });
  const { answer, record } = doneOf(await kit.events({ method: 'chat' }));
  expect(answer).toBe('ab');
  expect(record.tokenIds.slice(-4)).toEqual(ids);
});

test('a vocabulary with think tags as control tokens still gives reasoning', async () => {
  const tokenizer = createPieceTokenizer([
    '<|endoftext|>',
    '<|im_start|>',
    '<|im_end|>',
    '<think>',
    '</think>',
  ]);
  const kit = createKit({
    tokenizer,
    turns: [[3, tokenizer.piece('hm'), 4, ...tokenizer.encodePlain('\n\nHello')]],
  });
  const events = await kit.events({ method: 'chat' });
  expect(reasoningText(events)).toBe('hm');
  expect(answerText(events)).toBe('Hello');
});

test('the version that was expected answers; when it is gone, what stands there now', async () => {
  const kit = createKit({ turns: ['<answer>Lisbon</answer>'] });
  const { open } = kit.generator;
  kit.generator.open = async (options) => {
    if (options?.adapter === 'gone') throw new NotFoundError('no adapter "gone" is loaded');
    return open(options);
  };
  const versionOf = async (changes: Partial<RolloutRequest>) =>
    doneOf(await collect(kit.run(changes))).record.versions[0]?.adapterVersion;
  expect(await versionOf({ expectedVersion: 'v1' })).toBe('v1');
  expect(await versionOf({ expectedVersion: 'gone', adapter: 'tuned' })).toBe('tuned');
  expect(await versionOf({ expectedVersion: 'gone' })).toBe('base');
  await expect(versionOf({ expectedVersion: 'gone', adapter: 'gone' })).rejects.toMatchObject({
    code: 'not_found',
  });
});
