import { RunningBaselines } from '../../../../src/training/algorithms/index.js';

test('begins with the first reward, follows slowly, keeps clusters apart', () => {
  const baselines = new RunningBaselines({ decay: 0.75 });
  expect(baselines.valueOf('a')).toBe(0);
  baselines.update('a', 1);
  expect(baselines.valueOf('a')).toBe(1);
  baselines.update('a', 0);
  expect(baselines.valueOf('a')).toBe(0.75);
  expect(baselines.valueOf('never seen')).toBe(0.75);
  baselines.update('b', 0);
  expect([baselines.valueOf('a'), baselines.valueOf('b')]).toEqual([0.75, 0.5625]);
});

test('goes on from its state', () => {
  const first = new RunningBaselines({ decay: 0.5 });
  for (const [cluster, reward] of [
    ['a', 1],
    ['__proto__', 0.2],
    ['a', 0],
  ] as const)
    first.update(cluster, reward);
  const second = new RunningBaselines(JSON.parse(JSON.stringify(first.state())));
  for (const baselines of [first, second]) baselines.update('a', 0.9);
  expect(second.state()).toEqual(first.state());
  expect(second.valueOf('__proto__')).toBe(first.valueOf('__proto__'));
});
