// How many steps lie between two verdicts, and how rows of refusals draw them apart.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GateVerdict } from '../../../src/loop/online/gate/decide.js';
import { gateInterval } from '../../../src/loop/online/gate-interval.js';
import { Judge } from '../../../src/loop/online/judge.js';
import { post } from '../../support/test-server.js';
import { openLoopHouse, type RunningHouse } from '../support/loop-house.js';
import { importTiny } from '../support/tiny-rl-run.js';

jest.setTimeout(600_000);

const root = mkdtempSync(join(tmpdir(), 'searchloop-interval-'));
let house: RunningHouse;
beforeAll(() => importTiny(join(root, 'model'), join(__dirname, '..', '..', 'fixtures')));
afterEach(() => {
  jest.restoreAllMocks();
  return house?.close();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

test('the steps double with each way back and each version that was taken back, eight times at most', () => {
  const after = (returns: number, rolledBackInARow = 0) => gateInterval(3, { returns, rolledBackInARow });
  expect([0, 1, 2, 3, 4, 50].map((returns) => after(returns))).toEqual([3, 6, 12, 24, 24, 24]);
  expect([after(0, 1), after(1, 1), after(0, 9)]).toEqual([6, 12, 24]);
});

/** A loop with something to learn from, whose gate says what it is told. */
async function openRefused(name: string, verdict: GateVerdict): Promise<{ judged: jest.SpyInstance }> {
  jest.spyOn(Judge.prototype, 'pool').mockResolvedValue([]);
  jest.spyOn(Judge.prototype, 'knows').mockReturnValue(false);
  const judged = jest.spyOn(Judge.prototype, 'judge').mockImplementation(async (state) => {
    const lastGate = {
      version: 'v',
      verdict: verdict.verdict,
      reasons: [],
      tests: [...verdict.tests],
      at: 0,
    };
    return { verdict, state: { ...state, lastGate, stepsSinceGate: 0 }, confirmedBy: null };
  });
  const home = join(root, name);
  cpSync(join(root, 'model'), home, { recursive: true });
  house = await openLoopHouse(home, { 'loop.maxRefusals': 1 });
  for (const colour of ['red', 'green', 'blue', 'white', 'black', 'grey']) {
    const asked = await post(`${house.url}/v1/chat/completions`, {
      model: 'searchloop',
      messages: [{ role: 'user', content: `What is ${colour}?` }],
    });
    const { id } = (await asked.json()) as { id: string };
    await post(`${house.url}/v1/feedback`, { id, golden_answers: ['x'] });
  }
  return { judged };
}

test('where proof is missing again and again, the next verdict comes after twice as many steps', async () => {
  const { judged } = await openRefused('stuck', { verdict: 'refused', tests: [], reasons: ['no proof'] });
  const verdicts: number[] = [];
  const toGate: number[] = [];
  for (let step = 0; step < 4; step++) {
    await house.loop.step();
    verdicts.push(judged.mock.calls.length);
    toGate.push(house.loop.status().steps_to_gate);
  }
  expect(house.failures).toEqual([]);
  expect(verdicts).toEqual([1, 1, 2, 2]);
  expect(toGate).toEqual([2, 1, 4, 3]);
});

test('what broke a limit gets no more time', async () => {
  const kl = { name: 'kl', passed: false, value: 9, limit: 1, words: 'too far' } as const;
  await openRefused('far', { verdict: 'refused', tests: [kl], reasons: ['too far'] });
  await house.loop.step();
  expect(house.loop.status().counts.refused).toBe(1);
  expect(house.loop.status().steps_to_gate).toBe(1);
});
