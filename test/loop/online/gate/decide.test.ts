import {
  decideGate,
  type GateEvidence,
  type GatePair,
  type GateSettings,
} from '../../../../src/loop/online/gate/decide.js';

const settings: GateSettings = {
  questions: 300,
  margin: 0.03,
  alpha: 0.05,
  confirmEvery: 5,
  maxAttempts: 20,
  maxKl: 0.1,
  maxValidityLoss: 0.02,
};

/** `count` questions of which the first ones are right only now, or only before; actions are all valid. */
function pairs(count: number, onlyNow: number, onlyBefore: number, invalid = 0): GatePair[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `q${i}`,
    candidate: { em: i < onlyNow ? 1 : 0, validActions: 2, invalidActions: i < invalid ? 1 : 0 },
    live: { em: i >= onlyNow && i < onlyNow + onlyBefore ? 1 : 0, validActions: 2, invalidActions: 0 },
  }));
}

const good: GateEvidence = {
  pairs: pairs(300, 40, 10),
  alpha: 0.025,
  kl: 0.01,
  probeChange: 0.4,
  deletedRecords: 0,
  confirmation: null,
};

test('a better candidate within all limits passes; every test says so in words and numbers', () => {
  const { verdict, tests, reasons } = decideGate(good, settings);
  expect(verdict).toBe('passed');
  expect(reasons).toEqual([]);
  expect(tests.map(({ name }) => name)).toEqual(['probe', 'lineage', 'kl', 'validity', 'non-inferiority']);
  expect(tests.at(-1)?.words).toMatch(
    /on 300 questions exact match differs by \+0\.100 .*40 right only now, 10 only before.*p = \S+ <= 0\.025/,
  );
});

test('below its number of questions the gate waits, however good the candidate looks', () => {
  const { verdict, reasons } = decideGate({ ...good, pairs: pairs(299, 200, 0) }, settings);
  expect(verdict).toBe('waits');
  expect(reasons[0]).toContain('the gate has 299 questions and needs 300');
});

test.each([
  ['worse', { pairs: pairs(300, 10, 40) }, 'exact match differs by -0.100'],
  ['as good, but that is not shown', { pairs: pairs(300, 40, 40) }, 'is not ruled out'],
  ['a copy of the live version', { probeChange: 0 }, 'does not change the policy'],
  ['far from the start', { kl: 0.3 }, "KL to the policy of the loop's start is 0.3"],
  ['of unknown distance', { kl: Number.NaN }, 'is unknown nats'],
  ['worse at the format', { pairs: pairs(300, 40, 10, 30) }, '95.2 % of its actions are valid, 100.0 %'],
  ['trained on what was deleted since', { deletedRecords: 2 }, '2 records were deleted'],
])('a candidate that is %s is refused with its reason', (_name, change, words) => {
  const { verdict, reasons } = decideGate({ ...good, ...change }, settings);
  expect(verdict).toBe('refused');
  expect(reasons).toHaveLength(1);
  expect(reasons[0]).toContain(words);
});

test('fresh questions that do not confirm refuse; too few of them wait', () => {
  expect(decideGate({ ...good, confirmation: pairs(300, 20, 5) }, settings).verdict).toBe('passed');
  const refused = decideGate({ ...good, confirmation: pairs(300, 5, 30) }, settings);
  expect(refused.verdict).toBe('refused');
  expect(refused.reasons[0]).toContain('on 300 fresh questions');
  // Few candidates are put to it: it may spend all of alpha, whatever is left of it for the questions that all candidates meet.
  const doubtful = pairs(300, 12, 12);
  expect(decideGate({ ...good, pairs: doubtful }, settings).verdict).toBe('refused');
  const { tests } = decideGate({ ...good, confirmation: doubtful }, settings);
  expect(tests.at(-1)).toMatchObject({ name: 'confirmation', passed: true, limit: 0.05 });
  expect(tests.at(-1)?.value).toBeGreaterThan(good.alpha);
  expect(decideGate({ ...good, confirmation: pairs(120, 20, 0) }, settings)).toMatchObject({
    verdict: 'waits',
    reasons: [expect.stringContaining('120 are left and 300 are needed')],
  });
});
