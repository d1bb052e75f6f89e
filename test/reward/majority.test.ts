import { majorityAnswer, majorityShare, majorityWinners } from '../../src/reward/index.js';
import { fixture } from '../support/fixtures.js';

interface Case {
  answers: (string | null)[];
  gold: string;
  label: string | null;
  winners: string[];
  scoreTiesShared: number;
}

test('label, winners and shared score are those of the stored cases', () => {
  const { majority } = fixture<{ majority: Case[] }>('losses', 'evaluation.json');
  expect(majority.length).toBeGreaterThan(5);
  for (const { answers, gold, label, winners, scoreTiesShared } of majority) {
    expect({ answers, label: majorityAnswer(answers) }).toEqual({ answers, label });
    expect(majorityWinners(answers).sort()).toEqual([...winners].sort());
    expect(majorityShare(answers, [gold])).toBe(scoreTiesShared);
  }
});

test('nobody answered: no label', () => {
  expect(majorityAnswer([])).toBeNull();
  expect(majorityAnswer([null, ' ', 'the'])).toBeNull();
  expect(majorityShare([null], ['x'])).toBe(0);
});
