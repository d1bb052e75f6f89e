import { EngineAwayError } from '../../../src/engine/index.js';
import { NonFiniteError, OverloadedError, UnavailableError } from '../../../src/errors.js';
import { SearchesAwayError } from '../../../src/loop/offline/failed-searches.js';
import { UselessStepError } from '../../../src/loop/online/away.js';
import { Failures } from '../../../src/loop/online/failures.js';
import { StoreAwayError } from '../../../src/loop/online/patient-store.js';
import { ScorerAwayError } from '../../../src/reward/index.js';

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
