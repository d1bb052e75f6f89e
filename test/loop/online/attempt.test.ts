import { EngineAwayError } from '../../../src/engine/index.js';
import { IntegrityError, NonFiniteError, OverloadedError, UnavailableError } from '../../../src/errors.js';
import { Attempt } from '../../../src/loop/online/attempt.js';
import { Findings } from '../../../src/loop/online/findings.js';
import { StoreAwayError } from '../../../src/loop/online/patient-store.js';
import { SearchesAwayError } from '../../../src/rollout/index.js';

const known = () => new Findings(async () => new Set()).under('v1');
const plan = { step: 3, place: { pass: 0, cursor: 'b' } };
const behind = { pass: 0, cursor: 'f' };

function attempted(attempt = new Attempt()): Attempt {
  attempt.begin(plan);
  attempt.chose(behind);
  attempt.took(['logged']);
  return attempt;
}

test('what fails of itself is not tried again: others take the place of questions and of answers as given', () => {
  for (const error of [new NonFiniteError('NaN'), new IntegrityError('no completion'), new Error('oops')]) {
    const notes = known();
    expect(attempted().failed(error, notes)).toEqual(behind);
    expect(notes.against('logged')).toBe('a step with it failed');
  }
});

test('what was away is waited for once; then the next questions come, and answers as given stay', () => {
  const notes = known();
  const attempt = attempted();
  expect(attempt.failed(new UnavailableError('away'), notes)).toEqual({});
  expect(attempted(attempt).failed(new UnavailableError('away'), notes)).toEqual(behind);
  expect(notes.against('logged')).toBeNull();
});

test('what is away for all questions alike is waited for, however often', () => {
  const attempt = new Attempt();
  for (const error of [
    new SearchesAwayError('away'),
    new StoreAwayError('away'),
    new EngineAwayError('away'),
    new OverloadedError('full', 1),
  ])
    for (let tries = 0; tries < 3; tries++) expect(attempted(attempt).failed(error, known())).toEqual({});
});

test('a failure before the choice, or outside a step, changes no place', () => {
  const attempt = new Attempt();
  expect(attempt.failed(new NonFiniteError('NaN'), known())).toEqual({});
  attempt.begin(plan);
  expect(attempt.failed(new NonFiniteError('NaN'), known())).toEqual({});
  attempted(attempt).end();
  expect(attempt.failed(new NonFiniteError('NaN'), known())).toEqual({});
});
