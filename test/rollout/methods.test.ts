import { METHODS } from '../../src/rollout/index.js';
import { createMemoryRetriever } from '../support/memory-retriever.js';
import { createPieceTokenizer } from '../support/piece-tokenizer.js';
import {
  answerTokens,
  createKit,
  doneOf,
  eventsOf,
  joined,
  PASSAGES,
  RAW_POLICY,
  reasoningText,
} from '../support/rollout-kit.js';
import { scriptedLogprob, scriptedSamplingLogprob } from '../support/scripted-generator.js';

const count = (text: string): number => createPieceTokenizer().encodePlain(text).length;
const SEARCH = '<think>hm</think><search>capital of Portugal</search>';

const promptText = (kit: ReturnType<typeof createKit>, record: ReturnType<typeof doneOf>['record']): string =>
  kit.tokenizer.decode(record.tokenIds.filter((_id, i) => record.origin[i] === 'prompt'));

test('the registry holds every method under its name', () => {
  for (const [name, method] of Object.entries(METHODS)) expect(method.name).toBe(name);
  expect(Object.keys(METHODS)).toEqual(['search-r1', 'rag', 'cot', 'direct', 'chat']);
});

describe('rag', () => {
  test('one search with the question, passages in the prompt, the whole text is the answer', async () => {
    const kit = createKit({ turns: ['\nLisbon it is.'] });
    const events = await kit.events({ method: 'rag' });
    expect(joined(events)).toEqual([
      { type: 'search.query', index: 0, query: 'What is the capital of Portugal?' },
      expect.objectContaining({ type: 'search.results', error: null }),
      { type: 'answer.delta', text: 'Lisbon it is.' },
    ]);
    const { record, usage } = doneOf(events);
    expect(promptText(kit, record)).toContain('Doc 1(Title: Lisbon) Lisbon is the capital of Portugal.');
    expect(record.searches).toHaveLength(1);
    expect(record.searches[0]?.observation).toEqual([0, record.turnStarts[0]]);
    expect(record).toMatchObject({ stop: 'answer', method: 'rag', indexSnapshotId: 'memory-1' });
    expect(usage).toMatchObject({ searches: 1, injectedTokens: 0, promptTokens: record.turnStarts[0] });
  });

  test('a policy that was trained on tags shows none of them', async () => {
    const kit = createKit({ turns: ['<think>It says so.</think>\n<answer>Lisbon</answer>'] });
    const events = await kit.events({ method: 'rag' });
    expect(reasoningText(events)).toBe('It says so.');
    expect(doneOf(events).answer).toBe('Lisbon');
  });

  test('a failed search is said in the prompt, and the record knows', async () => {
    const kit = createKit({
      turns: ['x'],
      retriever: createMemoryRetriever({ passages: PASSAGES, failures: 9 }),
    });
    const { record, citations } = doneOf(await kit.events({ method: 'rag' }));
    expect(promptText(kit, record)).toContain('(The search failed.)');
    expect(record.searches[0]?.error).toBe('the engine is away');
    expect(citations).toEqual([]);
  });

  test('passages give way to the window; the question never does', async () => {
    const passages = [{ id: 'x', title: 'T', text: 'word '.repeat(900) }];
    const bare = createKit({ turns: ['x'], retriever: createMemoryRetriever({ passages: [] }) });
    const length = doneOf(await bare.events({ method: 'rag' })).record.turnStarts[0] as number;
    for (const [window, some] of [
      [length + 200, true],
      [length + 20, false],
    ] as const) {
      const kit = createKit({
        turns: ['Lisbon'],
        retriever: createMemoryRetriever({ passages }),
        maxSequenceTokens: window,
        config: { turnTokens: 20 },
      });
      const { record, answer } = doneOf(await kit.events({ method: 'rag' }));
      expect(answer).toBe('Lisbon');
      expect(promptText(kit, record)).toContain('Question: What is the capital of Portugal?');
      expect(promptText(kit, record).includes('word word')).toBe(some);
    }
  });
});

describe('cot', () => {
  test('reasons, then answers between tags; search tags mean nothing', async () => {
    const kit = createKit({ turns: ['<think>a</think> <search>q</search> b <answer> Lisbon </answer>'] });
    const events = await kit.events({ method: 'cot' });
    expect(doneOf(events)).toMatchObject({ answer: 'Lisbon', finish: 'stop', citations: [] });
    expect(reasoningText(events).replace(/\s+/g, ' ')).toBe('a q b ');
    expect(kit.generator.turns[0]?.stopStrings).toEqual(['</answer>']);
  });

  test('an answer is forced in serving', async () => {
    const turns = ['It must be Lisbon.', 'Lisbon</answer>'];
    const served = doneOf(await createKit({ turns }).events({ method: 'cot', forceAnswer: true }));
    expect(served).toMatchObject({ answer: 'Lisbon', finish: 'stop', record: { forced: true } });
    const evaluated = doneOf(await createKit({ turns }).events({ method: 'cot' }));
    expect(evaluated).toMatchObject({
      answer: '',
      finish: 'length',
      record: { forced: false, stop: 'budget' },
    });
  });
});

test('direct: the whole text, trimmed', async () => {
  const kit = createKit({ turns: [' Lisbon\n'] });
  const { answer, record } = doneOf(await kit.events({ method: 'direct' }));
  expect(answer).toBe('Lisbon');
  expect(promptText(kit, record)).toMatch(/Question: What is the capital of Portugal\?<\|im_end\|>/);
  expect(record.indexSnapshotId).toBeNull();
});

describe('chat', () => {
  test('no instruction is added and the text stays as it is', async () => {
    const kit = createKit({ turns: ['  code <search> x\n'] });
    const { answer, record } = doneOf(await kit.events({ method: 'chat' }));
    expect(answer).toBe('  code <search> x\n');
    expect(promptText(kit, record)).toBe(
      '<|im_start|>user\nWhat is the capital of Portugal?<|im_end|>\n<|im_start|>assistant\n',
    );
    expect(record).toMatchObject({ promptTemplateDigest: 'none', validActions: 0, invalidActions: 0 });
  });

  test('a think block is reasoning', async () => {
    const kit = createKit({ turns: ['<think>\nhm\n</think>\n\nHello'] });
    const events = await kit.events({ method: 'chat' });
    expect(reasoningText(events)).toBe('\nhm\n');
    expect(doneOf(events).answer).toBe('Hello');
  });

  test('a template that opens the think block starts in reasoning', async () => {
    const base = createPieceTokenizer();
    const tokenizer = {
      ...base,
      encodeChat: (messages: Parameters<typeof base.encodeChat>[0]) => [
        ...base.encodeChat(messages),
        ...base.encodePlain('<think>\n'),
      ],
    };
    for (const method of ['chat', 'direct'] as const) {
      const kit = createKit({ tokenizer, turns: ['hm</think>\n\nHello'] });
      const events = await kit.events({ method });
      expect(reasoningText(events)).toBe('hm');
      expect(doneOf(events).answer).toBe('Hello');
    }
  });
});

test('usage counts what was sampled, injected and reasoned', async () => {
  const kit = createKit({ turns: [SEARCH, '<answer>Lisbon</answer>'] });
  const events = await kit.events({ forceAnswer: true });
  const { usage, record } = doneOf(events);
  const environment = record.origin.filter((origin) => origin === 'environment').length;
  const sampled = count(SEARCH) + count('<answer>Lisbon</answer>');
  expect(usage).toEqual({
    promptTokens: (record.turnStarts[0] as number) + environment,
    cachedTokens: 0,
    completionTokens: sampled,
    reasoningTokens: sampled - answerTokens(events).length,
    injectedTokens: environment,
    searches: 1,
  });
  const chat = createKit({ turns: ['<think>a b</think>Hello'] });
  const { usage: plain } = doneOf(await chat.events({ method: 'direct' }));
  expect(plain.completionTokens - plain.reasoningTokens).toBeGreaterThanOrEqual(2);
  const noThought = doneOf(await createKit({ turns: ['Hello'] }).events({ method: 'chat' }));
  expect(noThought.usage.reasoningTokens).toBe(0);
});

test('the record holds the request and the token values of the engine', async () => {
  const kit = createKit({ turns: [SEARCH, '<answer>Lisbon</answer>'] });
  const { record } = doneOf(
    await kit.events({
      id: 'my-id',
      groupId: 'g',
      seed: 11,
      adapter: 'v7',
      topLogprobs: 2,
      maxTokens: 400,
      sampling: { ...RAW_POLICY, temperature: 0.5 },
    }),
  );
  expect(record).toMatchObject({
    id: 'my-id',
    groupId: 'g',
    seed: 11,
    method: 'search-r1',
    question: 'What is the capital of Portugal?',
    modelDigest: 'f'.repeat(64),
    sampling: { temperature: 0.5, maxTokens: 400, actionBudget: 4, passages: 3 },
    versions: [{ start: 0, end: record.tokenIds.length, adapterVersion: 'v7' }],
  });
  expect(record.promptTemplateDigest).toMatch(/^[0-9a-f]{64}$/);
  expect(kit.generator.opened).toMatchObject([{ adapter: 'v7', seed: 11 }]);
  expect(kit.generator.turns.every(({ topLogprobs }) => topLogprobs === 2)).toBe(true);
  for (const [i, id] of record.tokenIds.entries()) {
    const sampled = record.lossMask[i] === 1;
    expect(record.logprobs[i]).toBe(sampled ? scriptedLogprob(id) : 0);
    expect(record.samplingLogprobs[i]).toBe(sampled ? scriptedSamplingLogprob(id) : 0);
  }
});

test('the base model and the live alias are told apart', async () => {
  const kit = createKit({ turns: ['a'] });
  await kit.events({ method: 'chat', adapter: null });
  await kit.events({ method: 'chat' });
  expect(kit.generator.opened.map((open) => 'adapter' in open && open.adapter)).toEqual([null, false]);
});

describe('citations', () => {
  test('the passages that hold the answer, over all of it', async () => {
    const kit = createKit({ turns: [SEARCH, '<answer>The Tagus.</answer>'] });
    const { citations } = doneOf(await kit.events());
    expect(citations.map(({ passage, start, end }) => [passage.id, start, end])).toEqual([['p1', 0, 10]]);
  });

  test('else those of the last search; none without one, none for no answer', async () => {
    const last = createKit({ turns: [SEARCH, '<search>harbour</search>', '<answer>unknown</answer>'] });
    const done = doneOf(await last.events({ topK: 1 }));
    expect(done.citations.map(({ passage }) => passage.id)).toEqual(['p2']);
    const none = createKit({ turns: ['<answer>Lisbon</answer>'] });
    expect(doneOf(await none.events()).citations).toEqual([]);
    const budget = createKit({ turns: [SEARCH] });
    expect(doneOf(await budget.events({ actionBudget: 1 })).citations).toEqual([]);
  });
});

test('what cannot be run is refused before anything is taken', async () => {
  const kit = createKit({ retriever: null });
  await expect(kit.events()).rejects.toMatchObject({ code: 'unavailable' });
  await expect(kit.events({ method: 'chat', messages: [] })).rejects.toMatchObject({
    code: 'invalid_input',
    param: 'messages',
  });
  await expect(kit.events({ method: 'unheard-of' as never })).rejects.toMatchObject({
    code: 'invalid_input',
  });
  expect(kit.generator.opened).toEqual([]);
  expect(doneOf(await kit.events({ method: 'chat' })).finish).toBe('stop');
});

test('a failure of the engine rises, and the slot is freed', async () => {
  const kit = createKit({
    turns: ['a b c d e'],
    beforeToken: (sampled) => {
      if (sampled === 3) throw new Error('the worker died');
    },
  });
  await expect(kit.events()).rejects.toThrow('the worker died');
  expect(kit.generator.openSlots).toBe(0);
  expect(kit.records).toEqual([]);
});

test('a search event carries what was found, once', async () => {
  const kit = createKit({ turns: [SEARCH, '<answer>Lisbon</answer>'] });
  const [results] = eventsOf(await kit.events({ topK: 1 }), 'search.results');
  expect(results?.passages).toEqual([{ ...PASSAGES[0], score: expect.any(Number) }]);
  expect(results?.durationMs).toBeGreaterThanOrEqual(0);
});
