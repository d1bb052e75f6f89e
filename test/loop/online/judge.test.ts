// Whom the gate judges, on which questions, and when it need not ask again.

import { GateMeasures } from '../../../src/loop/online/gate/measure.js';
import type { GateQuestion } from '../../../src/loop/online/gate/questions.js';
import type { LoopHouse } from '../../../src/loop/online/house.js';
import { Judge, type Judgement } from '../../../src/loop/online/judge.js';
import type { LabelIndex } from '../../../src/loop/online/labels.js';
import type { Versions } from '../../../src/loop/online/publish.js';
import { type LoopState, newLoopState } from '../../../src/loop/online/state.js';

const COUNT = 300;
const poolOf = (count: number, from = 0): GateQuestion[] =>
  Array.from({ length: count }, (_, i) => ({
    key: `q${from + i}`,
    messages: [{ role: 'user', content: `question ${from + i}` }],
    goldenAnswers: ['x'],
  }));

let asked: string[][] = [];
/** What was measured between which versions. */
let measured: [what: string, first: string | null, second: string | null][] = [];
/** What the engine finds in the candidate's checkpoint. */
let loaded = '';
/** Of candidates that are just as good, or that lose every tenth question. */
let isAsGood = true;
beforeEach(() => {
  asked = [];
  measured = [];
  isAsGood = true;
  jest.spyOn(GateMeasures.prototype, 'forgetAllBut').mockResolvedValue();
  jest.spyOn(GateMeasures.prototype, 'kl').mockImplementation(async (_questions, candidate, reference) => {
    measured.push(['kl', candidate, reference]);
    return 0;
  });
  jest.spyOn(GateMeasures.prototype, 'probeChange').mockImplementation(async (_question, a, b) => {
    measured.push(['probe', a, b]);
    return 1;
  });
  jest.spyOn(GateMeasures.prototype, 'pairs').mockImplementation(async (questions, candidate, other) => {
    measured.push(['pairs', candidate, other]);
    asked.push(questions.map(({ key }) => key));
    const answer = (em: 0 | 1) => ({ em, validActions: 1, invalidActions: 0 });
    return questions.map(({ key }, i) => ({
      id: key,
      candidate: answer(isAsGood || i % 10 > 0 ? 1 : 0),
      live: answer(1),
    }));
  });
});
afterEach(() => jest.restoreAllMocks());

const lineOf = jest.fn(async () => []);

function judgeOf(confirmEvery: number): Judge {
  const gate = {
    questions: COUNT,
    margin: 0.03,
    alpha: 0.05,
    confirmEvery,
    maxAttempts: 20,
    maxKl: 1,
    maxValidityLoss: 1,
  };
  const house = {
    gate,
    gateQuestions: [],
    folder: '.',
    serving: { retriever: null },
    engine: { loadAdapter: async () => ({ version: loaded }) },
    store: { lineOf },
  };
  const ready = async (version: string) => (version === 'base' ? null : version);
  return new Judge(house as unknown as LoopHouse, { ready } as unknown as Versions);
}

const candidate = (state: LoopState, version: string): LoopState => ({
  ...state,
  ledger: { trainerStep: 1, version, checkpoint: '', state: '' },
});
const labelsOf = (pool: () => readonly GateQuestion[]) =>
  ({ dropDeletedJudges: async () => {}, toJudge: pool }) as unknown as LabelIndex;
function judged(
  judge: Judge,
  state: LoopState,
  pool: GateQuestion[] | (() => GateQuestion[]),
): Promise<Judgement> {
  loaded = state.ledger?.version ?? '';
  const labels = labelsOf(typeof pool === 'function' ? pool : () => pool);
  return judge.judge(state, labels, new AbortController().signal);
}

test('a candidate is compared with the live version, with the one confirmed last on fresh questions, with the start in distance', async () => {
  const pool = poolOf(2 * COUNT);
  const state = { ...newLoopState(0, 'started'), live: 'lives', confirmed: 'confirmed' };
  const { verdict } = await judged(judgeOf(1), candidate(state, 'v'), pool);
  expect(verdict.verdict).toBe('passed');
  expect(measured).toEqual([
    ['kl', 'v', 'started'],
    ['probe', 'v', 'lives'],
    ['pairs', 'v', 'lives'],
    ['pairs', 'v', 'confirmed'],
  ]);
  expect(lineOf).toHaveBeenLastCalledWith('v', ['lives']);
  // The base model is no adapter.
  measured = [];
  await judged(judgeOf(1), candidate(newLoopState(0, 'base'), 'v'), pool);
  expect(measured.map(([, , other]) => other)).toEqual([null, null, null, null]);
});

test.each([
  { confirmEvery: 5, publications: 3, attempts: 0, isDue: false },
  { confirmEvery: 5, publications: 4, attempts: 0, isDue: true },
  { confirmEvery: 5, publications: 0, attempts: 19, isDue: false },
  // Candidates alone ask for none that are not there.
  { confirmEvery: 5, publications: 0, attempts: 20, isDue: false },
  { confirmEvery: 0, publications: 9, attempts: 99, isDue: false },
])('fresh questions are due after so many publications or candidates: %j', async (settings) => {
  const { confirmEvery, publications, attempts, isDue } = settings;
  const begun = newLoopState(0, 'base');
  const state = { ...begun, stretch: { ...begun.stretch, publications, attempts } };
  // None are left.
  const { verdict } = await judged(judgeOf(confirmEvery), candidate(state, 'v'), poolOf(COUNT));
  expect([verdict.verdict === 'waits', asked.length]).toEqual(isDue ? [true, 0] : [false, 1]);
});

test('a candidate that was refused is not tried again on the same questions, also after a restart', async () => {
  isAsGood = false;
  const pool = poolOf(COUNT);
  const { verdict, state } = await judged(judgeOf(5), candidate(newLoopState(0, 'base'), 'v'), pool);
  expect(verdict.verdict).toBe('refused');
  const later = judgeOf(5);
  expect(later.knows(state, pool)).toBe(true);
  // More questions than a verdict takes change nothing.
  expect(later.knows(state, [...pool, ...poolOf(50, COUNT)])).toBe(true);
  expect(later.knows(candidate(state, 'w'), pool)).toBe(false);
  expect(later.knows({ ...state, live: 'other' }, pool)).toBe(false);
  const corrected = pool.map((question, i) => (i === 7 ? { ...question, goldenAnswers: ['y'] } : question));
  expect(later.knows(state, corrected)).toBe(false);
  expect(judgeOf(6).knows(state, pool)).toBe(false);
});

test('where nothing ever confirms, other questions take the place of those whose error is spent, while there are enough', async () => {
  const judge = judgeOf(0);
  let state = newLoopState(0, 'base');
  const verdicts: string[] = [];
  for (let i = 0; i < 14; i++) {
    const judgement = await judged(judge, candidate(state, `v${i}`), poolOf(2 * COUNT + 50));
    state = judgement.state;
    verdicts.push(judgement.verdict.verdict);
    expect(judgement.confirmedBy).toBeNull();
  }
  const sets = asked.map((keys) => [...keys].sort().join(' '));
  expect(new Set(sets).size).toBe(2);
  expect(sets.indexOf(sets[5] as string)).toBe(5);
  expect(asked[0]?.some((key) => asked[5]?.includes(key))).toBe(false);
  // No third set is left: what is as good passes six times on the second one, too.
  expect(verdicts).toEqual([...Array(11).fill('passed'), ...Array(3).fill('refused')]);
  expect(state.stretch.attempts).toBe(9);
});

test.each([0, 5])(
  'after many refusals one that is as good as the live version still passes (confirmEvery %d)',
  async (confirmEvery) => {
    const judge = judgeOf(confirmEvery);
    const pool = poolOf(12 * COUNT);
    let state = newLoopState(0, 'base');
    isAsGood = false;
    for (let i = 0; i < 30; i++) {
      const judgement = await judged(judge, candidate(state, `v${i}`), pool);
      expect(judgement.verdict.verdict).toBe('refused');
      state = judgement.state;
    }
    const sets = new Set(asked.map((keys) => [...keys].sort().join(' ')));
    expect(sets.size).toBe(6);
    isAsGood = true;
    const { verdict } = await judged(judge, candidate(state, 'w'), pool);
    expect(verdict.verdict).toBe('passed');
  },
);

test('a new stretch leaves as many questions as the next confirmation takes, and publications go on being counted', async () => {
  const judge = judgeOf(5);
  const start = newLoopState(0, 'base');
  const spent = {
    ...start.stretch,
    attempts: 5,
    publications: 3,
    working: poolOf(COUNT).map(({ key }) => key),
  };
  const renewed = await judged(judge, candidate({ ...start, stretch: spent }, 'v'), poolOf(3 * COUNT));
  expect(renewed.state.stretch).toMatchObject({ attempts: 1, publications: 3 });
  expect(new Set(renewed.state.stretch.used)).toEqual(new Set(spent.working));
  const kept = await judged(judge, candidate({ ...start, stretch: spent }, 'v'), poolOf(3 * COUNT - 1));
  expect(kept.state.stretch).toMatchObject({ attempts: 6, publications: 3, used: [] });
});

test('where questions run out, who passes after twenty others is published without fresh ones; the fifth publication waits for them', async () => {
  const judge = judgeOf(5);
  const start = newLoopState(0, 'base');
  const pool = poolOf(2 * COUNT - 1);
  const working = pool.slice(0, COUNT).map(({ key }) => key);
  const many = { ...start, stretch: { ...start.stretch, attempts: 20, working } };
  jest.spyOn(GateMeasures.prototype, 'pairs').mockImplementation(async (questions) => {
    const answer = (em: 0 | 1) => ({ em, validActions: 1, invalidActions: 0 });
    return questions.map(({ key }, i) => ({
      id: key,
      candidate: answer(1),
      live: answer(i % 5 > 0 ? 1 : 0),
    }));
  });
  expect(await judged(judge, candidate(many, 'v'), pool)).toMatchObject({
    verdict: { verdict: 'passed' },
    confirmedBy: null,
  });
  const fifth = { ...many, stretch: { ...many.stretch, publications: 4 } };
  expect((await judged(judge, candidate(fifth, 'v'), pool)).verdict.verdict).toBe('waits');
});

test('who is refused before it is asked anything spends nothing of alpha', async () => {
  jest.spyOn(GateMeasures.prototype, 'kl').mockResolvedValue(7);
  const judge = judgeOf(5);
  const { verdict, state } = await judged(judge, candidate(newLoopState(0, 'base'), 'v'), poolOf(COUNT));
  expect(verdict).toMatchObject({
    verdict: 'refused',
    reasons: [expect.stringContaining('KL to the policy')],
  });
  expect(asked).toEqual([]);
  expect(state.stretch.attempts).toBe(0);
  expect(state.lastGate).toMatchObject({ version: 'v', verdict: 'refused' });
  expect(judge.knows(state, poolOf(COUNT))).toBe(true);
});

test('questions that go while the candidate is asked are asked no more: others take their place', async () => {
  let pool = poolOf(COUNT + 1);
  const keys = () => pool.map(({ key }) => key);
  const forget = jest.spyOn(GateMeasures.prototype, 'forgetAllBut').mockResolvedValue();
  const whole = (GateMeasures.prototype.pairs as jest.Mock).getMockImplementation()!;
  jest.spyOn(GateMeasures.prototype, 'pairs').mockImplementationOnce(async (...given) => {
    const [gone] = (await whole(...given)) as { id: string }[];
    pool = pool.filter(({ key }) => key !== gone?.id);
    return ((await whole(...given)) as never[]).slice(1);
  });
  const { verdict } = await judged(judgeOf(0), candidate(newLoopState(0, 'base'), 'v'), () => pool);
  expect(verdict.verdict).toBe('passed');
  expect([...(asked.at(-1) ?? [])].sort()).toEqual(keys().sort());
  expect(forget.mock.calls.at(-1)?.[0]).toEqual(pool);
  // Nor is the distance that of fewer than were to be asked.
  jest.spyOn(GateMeasures.prototype, 'isGone').mockReturnValueOnce(true);
  measured = [];
  await judged(judgeOf(0), candidate(newLoopState(0, 'base'), 'v'), pool);
  expect(measured.map(([what]) => what)).toEqual(['kl', 'kl', 'probe', 'pairs']);
});

test('a checkpoint that holds another version is not judged under the name of the candidate', async () => {
  const state = candidate(newLoopState(0, 'base'), 'v');
  loaded = 'other';
  const labels = labelsOf(() => poolOf(COUNT));
  const judging = judgeOf(5).judge(state, labels, new AbortController().signal);
  await expect(judging).rejects.toThrow('holds version other, expected the candidate v');
});

test('fresh questions are asked of a candidate that all else lets pass, and of no other', async () => {
  const judge = judgeOf(1);
  const pool = poolOf(2 * COUNT);
  isAsGood = false;
  const refused = await judged(judge, candidate(newLoopState(0, 'base'), 'v'), pool);
  expect(refused).toMatchObject({ verdict: { verdict: 'refused' }, confirmedBy: null });
  expect(refused.state.stretch.used).toEqual([]);
  expect(asked).toHaveLength(1);
  isAsGood = true;
  const passed = await judged(judge, candidate(refused.state, 'w'), pool);
  expect(passed.verdict.tests.map(({ name }) => name)).toContain('confirmation');
  expect(asked).toHaveLength(3);
  expect([...(passed.confirmedBy ?? [])].sort()).toEqual([...(asked[2] as string[])].sort());
  expect(passed.state.stretch.used).toEqual(passed.confirmedBy);
  expect(asked[2]?.some((key) => asked[1]?.includes(key))).toBe(false);
});
