// Windows and budgets: what gives way, in which order, and what is said about it.

import { placePassages } from '../../src/rollout/passages.js';
import { createMemoryRetriever } from '../support/memory-retriever.js';
import { createPieceTokenizer } from '../support/piece-tokenizer.js';
import { createKit, doneOf, eventsOf, reasoningText } from '../support/rollout-kit.js';
import { uniformPolicy } from '../support/scripted-generator.js';

const SEARCH = '<search>capital of Portugal</search>';
const ANSWER = '<answer>Lisbon</answer>';
const long = (id: string, words: number) => ({
  id,
  title: `T${id}`,
  text: `${'word '.repeat(words)}end${id}`,
});

describe('an observation is cut', () => {
  const observe = async (passages: ReturnType<typeof long>[], observationTokens: number) => {
    const retriever = createMemoryRetriever({ passages });
    const kit = createKit({ turns: [SEARCH, ANSWER], retriever, config: { observationTokens } });
    const events = await kit.events({ topK: 3 });
    const observation = doneOf(events).record.observations[0];
    expect(observation?.kind).toBe('search');
    const [start, end] = observation?.range ?? [0, 0];
    expect(end - start).toBeLessThanOrEqual(observationTokens);
    expect(eventsOf(events, 'search.results')[0]?.passages).toHaveLength(passages.length);
    expect(observation?.text).toMatch(/^\n\n<information>[\s\S]*<\/information>\n\n$/);
    return observation?.text ?? '';
  };

  test('not when all passages fit', async () => {
    const text = await observe([long('1', 5), long('2', 5), long('3', 5)], 500);
    for (const end of ['end1\n', 'end2\n', 'end3\n']) expect(text).toContain(end);
  });

  test('between passages first: whole passages go from the end', async () => {
    const text = await observe([long('1', 30), long('2', 30), long('3', 30)], 200);
    expect(text).toContain('end1\n');
    expect(text).toContain('end2\n');
    expect(text).not.toContain('T3');
    expect(text.endsWith('end2\n</information>\n\n')).toBe(true);
  });

  test('then inside the last one, between characters; the closing tag is always there', async () => {
    const text = await observe([long('1', 400), long('2', 5)], 100);
    expect(text).toMatch(/Doc 1\(Title: T1\) (word )+w?o?r?d?\n<\/information>/);
    expect(text).not.toContain('end1');
    const surrogates = await observe([{ id: 'x', title: 'T', text: '🫠'.repeat(300) }], 100);
    expect(surrogates).toMatch(/\) (🫠)+\n/u);
    expect(surrogates).not.toContain('\ufffd');
  });

  test('even where a title alone is too long', async () => {
    const text = await observe([{ id: 'x', title: 'T '.repeat(300), text: 'body' }], 80);
    expect(text).toContain('Title: T T');
    expect(text).not.toContain('body');
  });
});

test('nothing found is said', async () => {
  const kit = createKit({ turns: [SEARCH, ANSWER], retriever: createMemoryRetriever({ passages: [] }) });
  expect(doneOf(await kit.events()).record.observations[0]?.text).toBe(
    '\n\n<information>Nothing was found.\n</information>\n\n',
  );
});

describe('the whole sequence', () => {
  const promptLength = async (): Promise<number> => {
    const { record } = doneOf(await createKit({ turns: [ANSWER] }).events());
    return record.turnStarts[0] as number;
  };

  test('a prompt that leaves no room for a token is refused before a slot is taken', async () => {
    const length = await promptLength();
    const kit = createKit({ turns: [ANSWER], maxSequenceTokens: length });
    await expect(kit.events()).rejects.toMatchObject({
      code: 'context_length_exceeded',
      message: expect.stringContaining('maximum context length'),
    });
    expect(kit.generator.opened).toEqual([]);
  });

  test('full while sampling: length; the prompt is whole', async () => {
    const length = await promptLength();
    const kit = createKit({ turns: ['word '.repeat(100)], maxSequenceTokens: length + 10 });
    const { record, finish, answer } = doneOf(await kit.events({ forceAnswer: true }));
    expect({ finish, answer, stop: record.stop }).toEqual({ finish: 'length', answer: '', stop: 'length' });
    expect(record.tokenIds).toHaveLength(length + 10);
    expect(record.turnStarts).toEqual([length]);
  });

  test('full at an observation: length, and the record ends with what was sampled', async () => {
    const length = await promptLength();
    const kit = createKit({ turns: [SEARCH, ANSWER], maxSequenceTokens: length + 30 });
    const { record, finish } = doneOf(await kit.events());
    expect({ finish, stop: record.stop }).toEqual({ finish: 'length', stop: 'length' });
    expect(record.origin.at(-1)).toBe('policy');
  });

  test('an observation leaves half of what is left to the policy', async () => {
    const length = await promptLength();
    const retriever = createMemoryRetriever({ passages: [long('1', 900)] });
    const kit = createKit({ turns: [SEARCH, ANSWER], retriever, maxSequenceTokens: length + 200 });
    const { record, answer } = doneOf(await kit.events());
    expect(answer).toBe('Lisbon');
    const [start, end] = record.observations[0]?.range ?? [0, 0];
    expect(end - start).toBeLessThanOrEqual((length + 200 - start) / 2);
  });
});

describe('max tokens over all turns', () => {
  const count = (text: string): number => createPieceTokenizer().encodePlain(text).length;

  test('ends in reasoning: an empty answer and length, also in serving', async () => {
    const kit = createKit({ turns: ['<think>a b c d e f</think>'] });
    const { answer, finish, record, usage } = doneOf(await kit.events({ maxTokens: 6, forceAnswer: true }));
    expect({ answer, finish, stop: record.stop }).toEqual({ answer: '', finish: 'length', stop: 'length' });
    expect(usage.completionTokens).toBe(6);
    expect(record.answer).toBeNull();
  });

  test('ends in the answer: what was written stays', async () => {
    const kit = createKit({ turns: ['<answer>one two three</answer>'] });
    const { answer, finish } = doneOf(
      await kit.events({ maxTokens: count('<answer>one two'), forceAnswer: true }),
    );
    expect({ answer, finish }).toEqual({ answer: 'one two', finish: 'length' });
  });

  test('counts all turns', async () => {
    const kit = createKit({ turns: [SEARCH, 'word '.repeat(100)] });
    const { usage, finish } = doneOf(await kit.events({ maxTokens: count(SEARCH) + 7 }));
    expect({ tokens: usage.completionTokens, finish }).toEqual({
      tokens: count(SEARCH) + 7,
      finish: 'length',
    });
  });

  test('used up by a search: no search is made, the query is reasoning', async () => {
    const retriever = createMemoryRetriever({ passages: [] });
    const kit = createKit({ turns: [SEARCH, ANSWER], retriever });
    const events = await kit.events({ maxTokens: count(SEARCH), forceAnswer: true });
    expect(doneOf(events).finish).toBe('length');
    expect(retriever.queries).toEqual([]);
    expect(reasoningText(events)).toBe('capital of Portugal');
  });

  test('used up by the closing tag or the end token: stop', async () => {
    for (const method of ['search-r1', 'chat'] as const) {
      const kit = createKit({ turns: [ANSWER] });
      const maxTokens = count(ANSWER) + (method === 'chat' ? 1 : 0);
      expect(doneOf(await kit.events({ method, maxTokens, forceAnswer: true })).finish).toBe('stop');
    }
  });

  test('one token without an end: length', async () => {
    const kit = createKit({ turns: ['word word'] });
    const { finish, usage } = doneOf(await kit.events({ method: 'chat', maxTokens: 1 }));
    expect({ finish, tokens: usage.completionTokens }).toEqual({ finish: 'length', tokens: 1 });
  });
});

test('the end token does not end a turn that ignores it', async () => {
  const tokenizer = createPieceTokenizer();
  const turn = [tokenizer.piece('a'), tokenizer.endId, tokenizer.piece('b')];
  const kit = createKit({ tokenizer, turns: [turn] });
  const { answer, usage } = doneOf(await kit.events({ method: 'chat', ignoreEos: true, maxTokens: 3 }));
  expect({ answer, tokens: usage.completionTokens }).toEqual({ answer: 'ab', tokens: 3 });
});

test.each(['search-r1', 'rag', 'cot', 'direct', 'chat'] as const)(
  '%s: a policy that writes noise ends within its limits, with a sound record',
  async (method) => {
    for (let seed = 0; seed < 20; seed++) {
      const tokenizer = createPieceTokenizer();
      const tags = ['<think>', '</think>', '<search>', '</search>', '<answer>', '</answer>', '<information>'];
      const ids = [...tags, 'a ', 'b ', '<', '</', '>'].map(tokenizer.piece);
      const vocabulary = [tokenizer.endId, ...ids];
      const uniform = uniformPolicy(vocabulary.length, seed);
      const kit = createKit({
        tokenizer,
        policy: function* (turn, sequence) {
          for (const index of uniform(turn, sequence)) yield vocabulary[index] as number;
        },
        config: { turnTokens: 40 },
      });
      const { record, usage, finish } = doneOf(
        await kit.events({ method, forceAnswer: seed % 2 === 0, maxTokens: 150 }),
      );
      expect(usage.completionTokens).toBeLessThanOrEqual(150);
      expect(record.turnStarts.length).toBeLessThanOrEqual(6);
      expect(['stop', 'length']).toContain(finish);
    }
  },
);

describe('tokens of one passage', () => {
  const words = Array.from({ length: 60 }, (_, i) => `word${i}`).join(' ');
  const passages = ['p1', 'p2', 'p3'].map((id) => ({ id, title: `Title ${id}`, text: words, score: 1 }));
  const form = { passage: 'Doc {index}(Title: {title}) {text}\n', passageWords: null, none: 'nothing\n' };
  const tokenizer = createPieceTokenizer();
  const place = (passageLimit: number | null) =>
    placePassages(passages, { tokenizer, form, prefix: '<', suffix: '>', limit: 10_000, passageLimit });

  test('every passage is cut on its own, between words, and none goes', () => {
    const placed = place(40);
    expect(placed?.passages.map(({ id }) => id)).toEqual(['p1', 'p2', 'p3']);
    for (const [i, { title, text }] of (placed?.passages ?? []).entries()) {
      const written = tokenizer.encodePlain(`Doc ${i + 1}(Title: ${title}) ${text}\n`).length;
      expect(written).toBeLessThanOrEqual(40);
      expect(written).toBeGreaterThan(34);
      expect(words.startsWith(`${text} `)).toBe(true);
    }
  });

  test('a limit that is not reached, or none, changes nothing', () => {
    expect(place(1000)?.text).toBe(place(null)?.text);
    expect(place(null)?.passages.map(({ text }) => text)).toEqual([words, words, words]);
  });

  test('a text without spaces is cut between characters', () => {
    const [passage] =
      placePassages([{ id: 'x', title: 'T', text: '\u{1f600}'.repeat(200), score: 1 }], {
        tokenizer,
        form,
        prefix: '<',
        suffix: '>',
        limit: 10_000,
        passageLimit: 50,
      })?.passages ?? [];
    expect(passage?.text).toMatch(/^(\u{1f600})+$/u);
  });
});
