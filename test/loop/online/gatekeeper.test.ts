// What comes of the gate's word. The gate itself says what it is told here.

import { Book } from '../../../src/loop/online/book.js';
import { Gatekeeper, type GatekeeperParts } from '../../../src/loop/online/gatekeeper.js';
import { type LoopState, newLoopState } from '../../../src/loop/online/state.js';

const ORDER = { signal: new AbortController().signal, by: null };
const ledger = { trainerStep: 3, version: 'v', checkpoint: 'step-00000003', state: '' };
const passing = { verdict: { verdict: 'passed', reasons: [], tests: [] }, confirmedBy: ['q'] };

/** A candidate v of three steps; of its records `gone` were deleted before, `deleted` go while the gate asks. */
function made({ deleted = 0, gone = 0, changes = {} as Partial<LoopState> } = {}) {
  const saved: LoopState[] = [];
  const published: string[] = [];
  const house = {
    settings: { gateEvery: 3, maxRefusals: 5, webhooks: [] },
    store: { lineOf: async () => [{ deletedRecords: gone }] },
    onNote: () => {},
    onFailure: () => {},
  };
  const publisher = {
    save: async (state: LoopState) => void saved.push(state),
    async publish(
      state: LoopState,
      _by: unknown,
      _heard: unknown,
      _confirmed: unknown,
      commit: Book['commit'],
    ) {
      published.push(state.ledger?.version ?? '');
      await commit({ ...state, name: 'waiting', live: 'v', passed: null });
    },
  };
  const start = { ...newLoopState(1, 'base'), ledger, step: 3, stepsSinceGate: 3, ...changes };
  const book = new Book(house as never, publisher as never, start);
  const judge = jest.fn(async (state: LoopState) => {
    gone += deleted;
    return { ...passing, state: { ...state, stepsSinceGate: 0 } };
  });
  const parts = {
    house,
    book,
    labels: {},
    judge: { pool: async () => [], knows: () => false, judge },
    publisher,
    trainers: {},
    watchman: { isUrgent: false, heard: { answers: [], sequence: 0 }, state: start },
  } as unknown as GatekeeperParts;
  Object.defineProperty(parts.watchman, 'state', { get: () => book.state });
  return { keeper: new Gatekeeper(parts), book, published, judge, saved };
}

test('what passes goes live', async () => {
  const { keeper, book, published } = made();
  expect(await keeper.judgeWhereDue(ORDER)).toBe(true);
  expect(published).toEqual(['v']);
  expect(book.state).toMatchObject({ name: 'waiting', live: 'v', passed: null });
});

test('records deleted while the gate asked keep the candidate from users: it is judged again at once', async () => {
  const { keeper, book, published, judge, saved } = made({ deleted: 1 });
  expect(await keeper.judgeWhereDue(ORDER)).toBe(true);
  expect(published).toEqual([]);
  expect(book.state).toMatchObject({ name: 'waiting', live: 'base', passed: null, stepsSinceGate: 3 });
  expect(saved.at(-1)).toEqual(book.state);
  await keeper.judgeWhereDue(ORDER);
  expect(judge).toHaveBeenCalledTimes(2);
});

test('a publication that was broken off goes on without another verdict; not where records were deleted since', async () => {
  const passed = { version: 'v', confirmedBy: null };
  const whole = made({ changes: { passed, stepsSinceGate: 0 } });
  expect(await whole.keeper.judgeWhereDue(ORDER)).toBe(true);
  expect([whole.published, whole.judge.mock.calls.length]).toEqual([['v'], 0]);
  const lacking = made({ gone: 1, changes: { passed, stepsSinceGate: 0 } });
  await lacking.keeper.judgeWhereDue(ORDER);
  expect([lacking.published, lacking.judge.mock.calls.length]).toEqual([[], 1]);
});
