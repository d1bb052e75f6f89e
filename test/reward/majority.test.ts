import { majorityAnswer, majorityWinners } from '../../src/reward/index.js';
import { readJson } from '../support/fixtures.js';

interface Case {
  answers: (string | null)[];
  label: string | null;
  winners: string[];
}

test('label and winners are those of the stored cases', () => {
  const { majority } = readJson('losses', 'evaluation.json') as { majority: Case[] };
  expect(majority.length).toBeGreaterThan(5);
  for (const { answers, label, winners } of majority) {
    expect({ answers, label: majorityAnswer(answers) }).toEqual({ answers, label });
    expect(majorityWinners(answers).sort()).toEqual([...winners].sort());
  }
});

test('nobody answered: no label', () => {
  expect(majorityAnswer([])).toBeNull();
  expect(majorityAnswer([null, ' ', 'the'])).toBeNull();
});
