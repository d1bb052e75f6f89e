// Answers that the gate keeps from one verdict to the next: of a conversation, not of what they were worth.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configSchema } from '../../../../src/config/index.js';
import type { Generator, OpenOptions } from '../../../../src/engine/index.js';
import { RetrievalError, UnavailableError } from '../../../../src/errors.js';
import { type AnswerFile, GateAnswers } from '../../../../src/loop/online/gate/answers.js';
import { GateMeasures } from '../../../../src/loop/online/gate/measure.js';
import type { GateQuestion } from '../../../../src/loop/online/gate/questions.js';
import { createPriority } from '../../../../src/loop/online/priority.js';
import { SearchOutages } from '../../../../src/loop/online/search-outages.js';
import { Unaskable } from '../../../../src/loop/online/unaskable.js';
import type { Retriever } from '../../../../src/retrieval/index.js';
import { loadPrompts } from '../../../../src/rollout/index.js';
import { createMemoryRetriever } from '../../../support/memory-retriever.js';
import { createPieceTokenizer } from '../../../support/piece-tokenizer.js';
import { PASSAGES } from '../../../support/rollout-kit.js';
import { createScriptedGenerator, scriptOf } from '../../../support/scripted-generator.js';

const never = new AbortController().signal;

interface Wish {
  readonly file?: AnswerFile | null;
  readonly retriever?: Retriever;
  readonly turns?: readonly string[];
  /** Of versions that are not as all others: what they say, and how likely each of their tokens is. */
  readonly versions?: Readonly<
    Record<string, { readonly turns: readonly string[]; readonly logprob: number }>
  >;
}

function measures({ file = null, retriever, turns = ['<answer>Lisbon</answer>'], versions = {} }: Wish = {}) {
  const unaskable = new Unaskable();
  const notes: string[] = [];
  const tokenizer = createPieceTokenizer();
  const made = (said: readonly string[], logprob?: number) =>
    createScriptedGenerator({
      tokenizer,
      policy: scriptOf(tokenizer, [...said]),
      eosTokenIds: [tokenizer.endId],
      ...(logprob === undefined ? {} : { logprob: () => logprob }),
    });
  const plain = made(turns);
  const own = new Map(
    Object.entries(versions).map(([name, { turns, logprob }]) => [name, made(turns, logprob)]),
  );
  const opened: OpenOptions[] = [];
  let meanwhile = (): unknown => null;
  const generator: Generator = {
    ...plain,
    open: (options = {}) => {
      opened.push(options);
      if (opened.length === 2) meanwhile();
      return (own.get(options.adapter ?? '') ?? plain).open(options);
    },
  };
  const house = {
    priority: createPriority(generator, { idleMs: 0, patienceMs: null }),
    parts: {
      retriever: retriever ?? createMemoryRetriever({ passages: PASSAGES }),
      tokenizer,
      config: { ...configSchema.parse({}).rollout, retrieverRetries: 0 },
      prompts: loadPrompts({ prompt: 'search-r1' }),
    },
    topK: 1,
    unaskable,
    outages: new SearchOutages(),
    onNote: (line: string) => notes.push(line),
    searchPausesMs: [1],
  };
  const gate = new GateMeasures(house, new GateAnswers(file));
  return {
    gate,
    unaskable,
    notes,
    /** Done when two were asked. */
    meanwhile(work: () => unknown): void {
      meanwhile = work;
    },
    /** Versions that were asked since the last call. */
    asked: () => opened.splice(0).map(({ adapter }) => adapter),
    /** Of the turns of a version since the last call. */
    temperatures: (version: string) =>
      own
        .get(version)
        ?.turns.splice(0)
        .map(({ sampling }) => sampling.temperature),
    async em(question: GateQuestion, candidate: string) {
      const [pair] = await gate.pairs([question], candidate, 'old', never);
      return [pair?.candidate.em, pair?.live.em];
    },
  };
}

const ask = (gold: string, ...earlier: string[]): GateQuestion => ({
  key: 'capital',
  messages: [...earlier, 'And its capital?'].map((content) => ({ role: 'user', content })),
  goldenAnswers: [gold],
});

test('gold answers that were corrected hold for both versions, and nobody is asked again', async () => {
  const { em, asked } = measures();
  expect(await em(ask('Lisbon'), 'first')).toEqual([1, 1]);
  expect(asked()).toEqual(['first', 'old']);
  expect(await em(ask('Porto'), 'second')).toEqual([0, 0]);
  expect(asked()).toEqual(['second']);
  expect(await em(ask('Lisbon'), 'second')).toEqual([1, 1]);
  expect(asked()).toEqual([]);
});

const VERSIONS = {
  good: { turns: ['<answer>Lisbon</answer>'], logprob: -1 },
  bad: { turns: ['No idea', '<answer>Porto</answer>'], logprob: -1.5 },
};

test('the candidate is the first of the two, whichever is better', async () => {
  const { gate, temperatures } = measures({ versions: VERSIONS });
  const right = { em: 1, validActions: 1, invalidActions: 0 };
  const wrong = { em: 0, validActions: 1, invalidActions: 1 };
  expect(await gate.pairs([ask('Lisbon')], 'good', 'bad', never)).toEqual([
    { id: 'capital', candidate: right, live: wrong },
  ]);
  expect(await gate.pairs([ask('Lisbon')], 'bad', 'good', never)).toEqual([
    { id: 'capital', candidate: wrong, live: right },
  ]);
  expect([temperatures('good'), temperatures('bad')]).toEqual([[0], [0, 0]]);
});

test('the distance is that of what the candidate samples, under both', async () => {
  const { gate, temperatures } = measures({ versions: VERSIONS });
  // exp(d) - d - 1 of each token, d = the other's log-probability less its own.
  const k3 = (d: number): number => Math.exp(d) - d - 1;
  expect(await gate.kl([ask('Lisbon')], 'good', 'bad', never)).toBeCloseTo(k3(-0.5), 12);
  expect(temperatures('good')).toEqual([1]);
  expect(new Set(temperatures('bad'))).toEqual(new Set([0]));
  expect(await gate.kl([ask('Lisbon')], 'bad', 'good', never)).toBeCloseTo(k3(0.5), 12);
  expect(temperatures('bad')).toEqual([1, 1]);
});

test('the probe tells a change of what is likeliest from a change of how likely it is, and from none', async () => {
  const { gate } = measures({
    versions: { ...VERSIONS, surer: { ...VERSIONS.good, logprob: -0.75 } },
  });
  const change = (a: string, b: string) => gate.probeChange(ask('Lisbon'), a, b, never);
  expect(await change('good', 'good')).toBe(0);
  expect(await change('good', 'surer')).toBe(0.25);
  expect(await change('surer', 'good')).toBe(0.25);
  expect(await change('good', 'bad')).toBe(1);
});

test('the same last question of another conversation is another question', async () => {
  const { em, asked } = measures();
  await em(ask('Lisbon', 'Tell me of Portugal.'), 'first');
  asked();
  await em(ask('Madrid', 'Tell me of Spain.'), 'first');
  expect(asked()).toEqual(['first', 'old']);
});

test('answers to conversations that are gone are not kept', async () => {
  const { gate, em, asked } = measures();
  const [here, gone] = [ask('Lisbon', 'Portugal'), ask('Madrid', 'Spain')];
  for (const question of [here, gone]) await em(question, 'first');
  await gate.forgetAllBut([here]);
  await gate.forgetAllBut([here, gone]);
  asked();
  for (const question of [here, gone]) await em(question, 'first');
  expect(asked()).toEqual(['first', 'old']);
});

test('a conversation that goes while the gate asks is asked no more, and what was under way is not kept', async () => {
  const { gate, asked, meanwhile } = measures();
  const [here, gone] = ['Portugal', 'Spain'].map((country) => ({ ...ask('Lisbon', country), key: country }));
  const both = [here, gone] as GateQuestion[];
  meanwhile(() => gate.forgetAllBut(both.slice(0, 1)));
  expect((await gate.pairs(both, 'first', 'old', never)).map(({ id }) => id)).toEqual(['Portugal']);
  expect(asked()).toEqual(['first', 'first', 'old']);
  expect(both.map((question) => gate.isGone(question))).toEqual([false, true]);
  expect(await gate.kl(both.slice(1), 'first', 'old', never)).toBeNaN();
  expect(asked()).toEqual([]);
  await gate.forgetAllBut(both);
  await gate.pairs(both, 'first', 'old', never);
  expect(asked()).toEqual(['first', 'old']);
});

test('a question that leaves no room in the window is left out, and named once; the others are compared', async () => {
  const { gate, unaskable, notes } = measures();
  const [short, long] = [ask('Lisbon'), ask('Lisbon', 'word '.repeat(5000))];
  const kept = { ...short, key: 'kept' };
  const pairs = await gate.pairs([long, kept], 'first', 'old', never);
  expect(pairs.map(({ id }) => id)).toEqual(['kept']);
  expect(unaskable.size).toBe(1);
  expect(unaskable.has(long.messages)).toBe(true);
  expect(notes).toEqual([expect.stringContaining('maximum context length')]);
  // Every version is as likely to say the same: of the question that is left the distance is none, and no number without one.
  expect(await gate.kl([long, kept], 'first', 'old', never)).toBe(0);
  expect(await gate.kl([long], 'first', 'old', never)).toBeNaN();
});

test('a verdict that another process began is not begun anew', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gate-measures-'));
  try {
    const file = { path: join(folder, 'answers.jsonl'), stamp: 'same', onNote: () => {} };
    const questions = ['Portugal', 'Spain', 'France'].map((country, at) => ({
      ...ask('Lisbon', country),
      key: `question ${at}`,
    }));
    await measures({ file }).gate.pairs(questions.slice(0, 2), 'first', 'old', never);
    const { gate, asked } = measures({ file });
    const pairs = await gate.pairs(questions, 'first', 'old', never);
    expect(asked()).toEqual(['first', 'old']);
    expect(pairs.map(({ candidate, live }) => [candidate.em, live.em])).toEqual([
      [1, 1],
      [1, 1],
      [1, 1],
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('an outage while the live version answers is no verdict, and none of its answers is kept', async () => {
  const memory = createMemoryRetriever({ passages: PASSAGES });
  let isAway = false;
  const retriever: Retriever = {
    ...memory,
    async search(queries, k, options) {
      if (isAway) throw new RetrievalError('the engine is away');
      return memory.search(queries, k, options);
    },
  };
  const turns = ['<search>capital of Portugal</search>', '<answer>Lisbon</answer>'];
  const { gate, asked } = measures({ retriever, turns });
  const question = ask('Lisbon');
  await gate.pairs([question], 'candidate', 'candidate', never);
  isAway = true;
  await expect(gate.pairs([question], 'candidate', 'live', never)).rejects.toThrow(UnavailableError);
  isAway = false;
  asked();
  const [pair] = await gate.pairs([question], 'candidate', 'live', never);
  expect(asked()).toEqual(['live']);
  expect([pair?.candidate.em, pair?.live.em]).toEqual([1, 1]);
});

test('over an index whose content nobody vouches for, each verdict asks anew', async () => {
  const memory = createMemoryRetriever({ passages: PASSAGES });
  const asks = async (retriever: Retriever) => {
    const { gate, em, asked } = measures({ retriever });
    const each: (string | null | undefined)[][] = [];
    for (const candidate of ['first', 'second']) {
      await gate.begin();
      await em(ask('Lisbon'), candidate);
      await em(ask('Lisbon'), candidate);
      each.push(asked());
    }
    return each;
  };
  expect(await asks(memory)).toEqual([['first', 'old'], ['second']]);
  const remote: Retriever = { ...memory, info: { ...memory.info, kind: 'remote' } };
  expect(await asks(remote)).toEqual([
    ['first', 'old'],
    ['second', 'old'],
  ]);
});
