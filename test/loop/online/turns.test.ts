// Orders and rounds: who comes when, and what ends what.

import { Turns } from '../../../src/loop/online/turns.js';

/** Works until its signal fires. */
const untilEnded = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

test('one thing at a time, in the order of asking; one that fails stops nobody', async () => {
  const turns = new Turns();
  const seen: string[] = [];
  const work = (name: string) => async (): Promise<void> => {
    seen.push(`${name} begins`);
    await Promise.resolve();
    seen.push(`${name} ends`);
    if (name === 'b') throw new Error('b');
  };
  const all = await Promise.allSettled(['a', 'b', 'c'].map((name) => turns.take(work(name))));
  expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(seen).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]));
});

test('an order ends the round that runs, and rounds that waited before it do nothing', async () => {
  const turns = new Turns();
  const rounds: boolean[] = [];
  const round = async (): Promise<void> => {
    const mayWork = turns.begin();
    rounds.push(mayWork);
    if (mayWork) await untilEnded(turns.signal);
  };
  const running = [turns.take(round), turns.take(round)];
  await Promise.resolve();
  await turns.interrupt(async () => {});
  await Promise.all(running);
  expect(rounds).toEqual([true, false]);
  expect(turns.begin()).toBe(true);
});

test('a rest ends by a wake and by the close, after which no round begins', async () => {
  const turns = new Turns();
  const first = turns.rest(1e8);
  turns.wake();
  await first;
  const second = turns.rest(1e8);
  turns.close();
  await second;
  await turns.settled();
  expect(turns.begin()).toBe(false);
  expect(turns.isClosed).toBe(true);
});
