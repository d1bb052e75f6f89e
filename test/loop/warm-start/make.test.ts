// The whole way with the real rollout runner: scripts, searches, records, files, resume, rivals.

import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configSchema } from '../../../src/config/index.js';
import { RetrievalError, UnavailableError } from '../../../src/errors.js';
import { isValidation, type Question } from '../../../src/evaluation/index.js';
import {
  makeRivals,
  makeWarmStart,
  readWarmStart,
  type TeachingHouse,
  transcriptOf,
} from '../../../src/loop/index.js';
import type { WarmStartLine } from '../../../src/loop/warm-start/line.js';
import { inlineEncoding, loadPrompts } from '../../../src/rollout/index.js';
import { audit } from '../../../src/trajectory/index.js';
import { createMemoryRetriever } from '../../support/memory-retriever.js';
import { createPieceTokenizer } from '../../support/piece-tokenizer.js';

const PASSAGES = [
  {
    id: 'f1',
    title: 'Oro bajo',
    text: 'Oro bajo is a 1956 Argentine film directed by Mario Soffici. It is long.',
  },
  {
    id: 'f2',
    title: 'Mario Soffici',
    text: 'Mario Soffici (1900 – 1977) was a director. A native of Florence by birth, he moved.',
  },
  { id: 'f3', title: 'Niyoti', text: 'Niyoti is a 2016 film of Bangladesh.' },
  { id: 'f4', title: 'Angali Pangali', text: 'Angali Pangali is a 1955 Tamil film.' },
  { id: 'f5', title: 'Red Moon', text: 'Red Moon is a 1950 film directed by Ann Able.' },
  { id: 'f6', title: 'Blue Sun', text: 'Blue Sun is a 1960 film directed by Bob Baker.' },
  { id: 'f7', title: 'Ann Able', text: 'Ann Able (1900 – 1970) was a Danish director.' },
  { id: 'f8', title: 'Bob Baker', text: 'Bob Baker (1910 – 1960) was an English director.' },
  { id: 'p1', title: 'Lisbon', text: 'Lisbon is the capital of Portugal.' },
  { id: 'p2', title: 'Porto', text: 'Porto is a harbour town on the river Douro.' },
];

/** Ids that begin with `name` and are of the training part. */
const idOf = (name: string): string => {
  for (let i = 0; ; i++) if (!isValidation(`${name}-${i}`)) return `${name}-${i}`;
};

const question = (
  name: string,
  text: string,
  golds: string[],
  titles: string[] = [],
  dataset = name,
): Question => ({
  id: idOf(name),
  dataset,
  question: text,
  goldenAnswers: golds,
  supportingTitles: titles,
});

const SINGLE = question('single', 'What is the capital of Portugal?', ['Lisbon'], ['Lisbon']);
const CHAIN = question(
  'chain',
  'What is the place of birth of the director of film Oro Bajo?',
  ['Florence'],
  ['Oro bajo', 'Mario Soffici'],
);
const COMPARISON = question(
  'comparison',
  'Which film came out earlier, Niyoti or Angali Pangali?',
  ['Angali Pangali'],
  ['Niyoti', 'Angali Pangali'],
);
const PARALLEL = question(
  'parallel',
  'Which film has the director who died earlier, Red Moon or Blue Sun?',
  ['Blue Sun'],
  ['Red Moon', 'Blue Sun', 'Ann Able', 'Bob Baker'],
);
const LOST = question('lost', 'Who wrote the tune of Zanzibar?', ['Nobody Known']);
const NAMED = question('named', 'Is Lisbon or Lisbon the capital of Portugal?', ['Lisbon']);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'warm-start-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const tokenizer = createPieceTokenizer();

function createHouse(overrides: Partial<TeachingHouse['config']> = {}): TeachingHouse {
  const { rollout } = configSchema.parse({ rollout: { actionBudget: 3, ...overrides } });
  return {
    info: {
      modelId: 'm',
      modelDigest: 'a'.repeat(64),
      precision: 'fp32',
      vocabSize: tokenizer.vocabSize,
      maxSequenceTokens: 4096,
      eosTokenIds: [tokenizer.endId],
      maxSequences: 1,
      fingerprint: 'f',
    },
    tokenizer,
    encoding: inlineEncoding(tokenizer),
    retriever: createMemoryRetriever({ passages: PASSAGES }),
    config: rollout,
    prompts: loadPrompts(rollout),
  };
}

async function made(questions: readonly Question[], overrides?: Partial<TeachingHouse['config']>) {
  const output = join(folder, 'out.jsonl');
  const house = createHouse(overrides);
  const summary = await makeWarmStart({ house, questions, output, count: 100, topK: 3 });
  const lines = await readWarmStart(output);
  return { output, house, summary, lines, texts: lines.map((line) => transcriptOf(line, tokenizer)) };
}

test('one search: the thought quotes the sentence of the answer', async () => {
  const { lines, texts } = await made([SINGLE]);
  expect(lines[0]).toMatchObject({ questionId: SINGLE.id, kind: 'single', goldenAnswers: ['Lisbon'] });
  expect(texts[0]).toMatch(/> <think>.*<\/think>\n> <search>What is the capital of Portugal<\/search>/);
  expect(texts[0]).toMatch(
    /> <think>Doc \d says: Lisbon is the capital of Portugal\.<\/think>\n> <answer>Lisbon<\/answer>$/,
  );
});

test('a chain: the second query is what the first page names and what is still asked', async () => {
  const { lines, texts } = await made([CHAIN]);
  expect(lines[0]?.record.searches.map(({ query }) => query)).toEqual([
    'What is the place of birth of the director of film Oro Bajo',
    'Mario Soffici place of birth',
  ]);
  expect(texts[0]).toMatch(
    /says: Oro bajo is a 1956 Argentine film directed by Mario Soffici\. So I need Mario Soffici\./,
  );
  expect(lines[0]?.record.answer).toBe('Florence');
});

test('a comparison: one page by the question, the other by its name, and the two years', async () => {
  const { lines, texts } = await made([COMPARISON]);
  expect(lines[0]?.record.searches.map(({ query }) => query)).toEqual([
    'Which film came out earlier, Niyoti or Angali Pangali',
    'Angali Pangali',
  ]);
  expect(texts[0]).toContain(
    'Niyoti: 2016. Angali Pangali: 1955.</think>\n> <answer>Angali Pangali</answer>',
  );
});

test('pages that lead to others are followed before they are compared', async () => {
  const { lines, texts } = await made([PARALLEL]);
  expect(lines[0]?.record.searches.map(({ query }) => query).slice(1)).toEqual(['Ann Able', 'Bob Baker']);
  expect(texts[0]).toContain('Ann Able: 1970. Bob Baker: 1960.</think>\n> <answer>Blue Sun</answer>');
  expect((await made([PARALLEL], { actionBudget: 2 }).catch((error) => error)).message).toMatch(
    /other settings/,
  );
});

test('every record is sound: audited, masked as sampled, of the teacher', async () => {
  const { lines } = await made([SINGLE, CHAIN, COMPARISON, PARALLEL]);
  expect(lines).toHaveLength(4);
  for (const { record } of lines) {
    expect(audit(record, tokenizer)).toEqual([]);
    expect(record).toMatchObject({ stop: 'answer', invalidActions: 0, forced: false, method: 'search-r1' });
    expect(record.versions.map(({ adapterVersion }) => adapterVersion)).toEqual(['teacher']);
    expect(record.lossMask.map((mask) => mask === 1)).toEqual(
      record.origin.map((origin) => origin === 'policy'),
    );
  }
});

test('what cannot be answered from the passages is left out, with the reason', async () => {
  const { lines, summary } = await made([LOST, NAMED, SINGLE]);
  expect(lines.map(({ dataset }) => dataset)).toEqual(['single']);
  expect(summary.left).toEqual({
    lost: { 'the answer is not in what the question finds': 1 },
    named: { 'the question names its answer': 1 },
  });
  expect(summary).toMatchObject({ trajectories: 1, kinds: { single: { single: 1 } } });
});

test('a question that does not fit the window is left out, with the reason', async () => {
  const long = { ...SINGLE, id: idOf('long'), dataset: 'long', question: `Is it ${'far '.repeat(5000)}?` };
  const { lines, summary } = await made([long, SINGLE]);
  expect(lines.map(({ dataset }) => dataset)).toEqual(['single']);
  expect(summary.left).toEqual({ long: { 'it does not fit the window': 1 } });
});

test('an answer that the observation cuts off is not there', async () => {
  const { lines } = await made([CHAIN], { passageTokens: 24 });
  expect(lines).toEqual([]);
});

describe('searches that fail', () => {
  /** @param isAway  by the number of the call and the query */
  const houseWith = (isAway: (call: number, query: string) => boolean): TeachingHouse => {
    const memory = createMemoryRetriever({ passages: PASSAGES });
    let calls = 0;
    const search: typeof memory.search = async (queries, k, options) => {
      calls++;
      if (queries.some((query) => isAway(calls, query))) throw new RetrievalError('the engine is away');
      return memory.search(queries, k, options);
    };
    const house = createHouse({ retrieverRetries: 0 });
    return { ...house, retriever: { ...memory, search }, searchPausesMs: [1, 1] };
  };
  const make = async (house: TeachingHouse, questions: readonly Question[]) => {
    const output = join(folder, 'out.jsonl');
    return { output, summary: await makeWarmStart({ house, questions, output, count: 100, topK: 3 }) };
  };

  test('a while: the lesson is begun again, and no other script takes its place', async () => {
    const whole = (await made([CHAIN])).lines[0]?.record;
    await rm(join(folder, 'out.jsonl'));
    // The pages, the first search; then the second one fails, and a look whether searches work.
    const { output } = await make(
      houseWith((call) => call === 3 || call === 4),
      [CHAIN],
    );
    const [line] = await readWarmStart(output);
    expect(line?.kind).toBe('chain');
    expect(line?.record.tokenIds).toEqual(whole?.tokenIds);
  });

  test('for good: the run ends, and goes on where it was', async () => {
    let isAway = true;
    const house = houseWith((_call, query) => isAway && !query.startsWith('Lisbon'));
    await expect(make(house, [SINGLE])).rejects.toThrow(UnavailableError);
    isAway = false;
    expect((await make(house, [SINGLE])).summary).toMatchObject({ trajectories: 1, left: {} });
  });

  test('a while, when the pages are looked for: the line is as it would have been', async () => {
    const whole = (await made([CHAIN])).lines[0]?.record;
    await rm(join(folder, 'out.jsonl'));
    const { output } = await make(
      houseWith((call) => call <= 2),
      [CHAIN],
    );
    expect((await readWarmStart(output))[0]?.record.tokenIds).toEqual(whole?.tokenIds);
  });

  test('for good, when the pages are looked for: the run ends and can go on', async () => {
    await expect(
      make(
        houseWith(() => true),
        [CHAIN],
      ),
    ).rejects.toThrow(UnavailableError);
  });

  test('the pages alone: nothing is learned from the question', async () => {
    const { summary } = await make(
      houseWith((_call, query) => query === 'Mario Soffici'),
      [CHAIN],
    );
    expect(summary.left).toEqual({ chain: { 'the search failed: the engine is away': 1 } });
  });

  test('one alone, while others are answered: nothing is learned from it', async () => {
    const { summary } = await make(
      houseWith((_call, query) => query.startsWith('What is the capital')),
      [SINGLE],
    );
    expect(summary).toMatchObject({
      trajectories: 0,
      left: { single: { 'the search failed: the engine is away': 1 } },
    });
  });

  test('passages of a prompt count too', async () => {
    const { lines: from } = await made([SINGLE]);
    const output = join(folder, 'rag.jsonl');
    const house = houseWith(() => true);
    await expect(makeRivals({ house, method: 'rag', from, output, topK: 2 })).rejects.toThrow(
      UnavailableError,
    );
  });
});

test('a question of the validation part is refused', async () => {
  const id = Array.from({ length: 100 }, (_, i) => `v-${i}`).find(isValidation) as string;
  await expect(made([{ ...SINGLE, id }])).rejects.toThrow(/validation part, which is never trained on/);
});

test('a file that was cut off is gone on with, to the very same file', async () => {
  const questions = [SINGLE, CHAIN, COMPARISON, PARALLEL];
  const { output, house } = await made(questions);
  const stripped = (text: string): string =>
    text.replace(/"createdAt":\d+/g, '').replace(/"durationMs":[\d.e-]+/g, '');
  const whole = await readFile(output, 'utf8');
  await writeFile(output, whole.slice(0, whole.indexOf('\n') + 50));
  const again = await makeWarmStart({ house, questions, output, count: 100, topK: 3 });
  expect(again.trajectories).toBe(4);
  expect(stripped(await readFile(output, 'utf8'))).toBe(stripped(whole));
});

test('two at once make the file of one', async () => {
  const { output, lines } = await made([SINGLE, CHAIN, COMPARISON]);
  await rm(output);
  const both = await Promise.all([made([SINGLE, CHAIN, COMPARISON]), made([SINGLE, CHAIN, COMPARISON])]);
  expect(both.map(({ summary }) => summary.trajectories)).toEqual([3, 3]);
  const ids = (all: readonly WarmStartLine[]) => all.map(({ questionId }) => questionId);
  expect(ids(await readWarmStart(output))).toEqual(ids(lines));
  const rivals = join(folder, 'rivals.jsonl');
  const house = createHouse();
  await Promise.all(
    [1, 2].map(() => makeRivals({ house, method: 'direct', from: lines, output: rivals, topK: 3 })),
  );
  expect(await readWarmStart(rivals)).toHaveLength(3);
});

test('searches of another width are other settings', async () => {
  const { output, house } = await made([SINGLE]);
  const wider = { house: { ...house, searchWidth: 512 }, questions: [SINGLE], output, count: 100, topK: 3 };
  await expect(makeWarmStart(wider)).rejects.toThrow('other settings');
});

test('a trajectory whose question or gold answers changed is made again; one whose question is gone is told', async () => {
  const { output, house, lines: before } = await made([SINGLE, CHAIN]);
  const corrected = { ...SINGLE, goldenAnswers: ['Lisbon', 'Lisboa'] };
  const notes: string[] = [];
  const options = { house, output, count: 100, topK: 3, onNote: (line: string) => notes.push(line) };
  const summary = await makeWarmStart({ ...options, questions: [corrected, CHAIN] });
  expect(summary.trajectories).toBe(2);
  expect(notes).toEqual([`${output}: made again, since question or gold answers have changed: 1`]);
  const lines = await readWarmStart(output);
  expect(lines.map(({ questionId, goldenAnswers }) => [questionId, goldenAnswers])).toEqual([
    [CHAIN.id, ['Florence']],
    [SINGLE.id, ['Lisbon', 'Lisboa']],
  ]);
  expect(lines[0]).toEqual(before.find(({ questionId }) => questionId === CHAIN.id));
  const untouched = await readFile(output, 'utf8');
  await expect(makeWarmStart({ ...options, questions: [CHAIN, COMPARISON] })).rejects.toThrow(
    new RegExp(`questions that are not among those given: 1, the first one ${SINGLE.id}`),
  );
  expect(await readFile(output, 'utf8')).toBe(untouched);
});

test('the sets take turns, and the count is kept', async () => {
  const more = Array.from({ length: 5 }, (_, i) => ({ ...SINGLE, id: idOf(`many${i}`), dataset: 'big' }));
  const output = join(folder, 'out.jsonl');
  await makeWarmStart({ house: createHouse(), questions: [...more, CHAIN], output, count: 2, topK: 3 });
  expect((await readWarmStart(output)).map(({ dataset }) => dataset).sort()).toEqual(['big', 'chain']);
});

test('a line that is none is named', async () => {
  const { output } = await made([SINGLE]);
  await appendFile(output, '{"questionId":1}\n');
  await expect(readWarmStart(output)).rejects.toThrow(/line 2/);
});

describe('rivals', () => {
  test('rag: the same questions, the passages in the prompt, the answer and the end token learnt', async () => {
    const { lines: from, house } = await made([SINGLE, CHAIN]);
    const output = join(folder, 'rag.jsonl');
    const summary = await makeRivals({ house, method: 'rag', from, output, topK: 2 });
    expect(summary).toMatchObject({ trajectories: 2, left: {} });
    const lines = await readWarmStart(output);
    for (const [i, { record, questionId, kind }] of lines.entries()) {
      expect([questionId, kind]).toEqual([from[i]?.questionId, 'rag']);
      expect(audit(record, tokenizer)).toEqual([]);
      const learnt = record.tokenIds.filter((_, t) => record.lossMask[t] === 1);
      expect(learnt.at(-1)).toBe(tokenizer.endId);
      expect(tokenizer.decode(learnt.slice(0, -1))).toBe(from[i]?.record.answer);
    }
    const single = lines.find(({ questionId }) => questionId === SINGLE.id);
    expect(tokenizer.decode(single?.record.tokenIds ?? [])).toContain('Lisbon is the capital of Portugal.');
    expect((await makeRivals({ house, method: 'rag', from, output, topK: 2 })).trajectories).toBe(2);
    expect(await readWarmStart(output)).toHaveLength(2);
    // Fewer than there are, and another answer to one of them.
    const [first, second] = from as [WarmStartLine, WarmStartLine];
    const other = { ...second, record: { ...second.record, answer: 'Lisbon, Portugal' } };
    const fewer = { house, method: 'rag', from: [first, other], output, topK: 2, count: 1 } as const;
    expect((await makeRivals(fewer)).trajectories).toBe(1);
    expect((await makeRivals({ ...fewer, count: 2 })).trajectories).toBe(2);
    expect((await readWarmStart(output)).map(({ record }) => record.answer)).toEqual([
      first.record.answer,
      'Lisbon, Portugal',
    ]);
  });

  test('direct: no passages', async () => {
    const { lines: from, house } = await made([SINGLE]);
    const output = join(folder, 'direct.jsonl');
    await makeRivals({ house: { ...house, retriever: null }, method: 'direct', from, output, topK: 3 });
    const [line] = await readWarmStart(output);
    expect(line?.record.searches).toEqual([]);
    expect(tokenizer.decode(line?.record.tokenIds ?? [])).not.toContain('Doc 1');
  });
});
