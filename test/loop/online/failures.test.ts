import { EngineAwayError } from '../../../src/engine/index.js';
import { NonFiniteError, OverloadedError, UnavailableError } from '../../../src/errors.js';
import { UselessStepError } from '../../../src/loop/online/away.js';
import { Failures } from '../../../src/loop/online/failures.js';
import { StoreAwayError } from '../../../src/loop/online/patient-store.js';
import { SearchOutages } from '../../../src/loop/online/search-outages.js';
import type { Retriever } from '../../../src/retrieval/index.js';
import { ScorerAwayError } from '../../../src/reward/index.js';
import { SearchesAwayError } from '../../../src/rollout/index.js';
import { createMemoryRetriever } from '../../support/memory-retriever.js';

const failures = () => {
  const told: string[] = [];
  return { told, failures: new Failures((error, doing) => told.push(`${doing}: ${error.message}`)) };
};

test('three failures in a row pause, and a round that went well begins anew', () => {
  const { failures: counted, told } = failures();
  const add = (error: Error) => counted.add(error, 'a step');
  expect([add(new Error('a')), add(new UnavailableError('b'))]).toEqual([null, null]);
  counted.clear();
  expect([add(new Error('a')), add(new UnavailableError('b'))]).toEqual([null, null]);
  expect(add(new NonFiniteError('c'))).toBe('a step was rejected 3 times in a row, the last time: c');
  expect(told).toHaveLength(5);
});

test.each([
  ['store', new StoreAwayError('gone'), 'the store is away: gone', 1],
  ['search', new SearchesAwayError('gone'), 'searches fail: gone', 16],
  ['engine', new EngineAwayError('gone'), 'the engine is away: gone', 16],
  ['slot', new OverloadedError('gone', 1), 'the engine is full: gone', 16],
  ['step', new UselessStepError('gone'), 'nothing is learned: gone', 256],
  ['judge', new ScorerAwayError('gone'), 'who tells what answers are worth is away: gone', 256],
])(
  'a %s that is away never pauses, is told once, and tried again ever more seldom',
  (_what, error, waitsFor, rest) => {
    const { failures: counted, told } = failures();
    for (let times = 0; times < 20; times++) expect(counted.add(error, 'a step')).toBeNull();
    expect([told, counted.waitsFor, counted.last, counted.rest]).toEqual([
      ['a step: gone'],
      waitsFor,
      'gone',
      rest,
    ]);
    counted.clear();
    expect([counted.waitsFor, counted.last, counted.rest]).toEqual([null, null, 1]);
    // The next time it is told again.
    counted.add(error, 'a step');
    expect(told).toHaveLength(2);
  },
);

test('failures that an outage comes between are still in a row', () => {
  const { failures: counted } = failures();
  counted.add(new Error('a'), 'a step');
  counted.add(new SearchesAwayError('gone'), 'a step');
  counted.add(new Error('a'), 'a step');
  expect(counted.waitsFor).toBeNull();
  expect(counted.add(new Error('a'), 'a step')).toMatch(/3 times in a row/);
});

test('a store that is back says nothing of searches', () => {
  const { failures: counted } = failures();
  counted.add(new SearchesAwayError('gone'), 'a step');
  counted.storeIsBack();
  expect(counted.waitsFor).toBe('searches fail: gone');
  counted.add(new StoreAwayError('gone'), 'a look');
  counted.storeIsBack();
  expect([counted.waitsFor, counted.last]).toEqual([null, null]);
});

test('a search that is waited for is known before the round gives up, and as over once one is answered', async () => {
  const outages = new SearchOutages();
  const counted = new Failures(() => {}, outages);
  let isAway = true;
  const memory = createMemoryRetriever({ passages: [] });
  const search: Retriever['search'] = (...asked) =>
    isAway ? Promise.reject(new Error('gone')) : memory.search(...asked);
  const rollout = outages.hear({ ...memory, search });
  const asks = () => rollout.retriever?.search(['Lisbon'], 1).catch(() => {});
  jest.spyOn(Date, 'now').mockReturnValueOnce(1000);
  await asks();
  expect(counted).toMatchObject({ waitsFor: expect.stringContaining('"Lisbon" failed: gone'), since: 1000 });
  // Nobody need look yet.
  expect(counted.alarm).toBeNull();
  counted.add(new SearchesAwayError('gone'), 'a step');
  rollout.end();
  expect(counted).toMatchObject({
    waitsFor: 'searches fail: gone',
    since: 1000,
    alarm: 'searches fail: gone',
  });
  isAway = false;
  await asks();
  expect(counted).toMatchObject({ waitsFor: null, since: null, alarm: null });
});
