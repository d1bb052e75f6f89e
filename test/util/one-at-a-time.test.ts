import { setTimeout as sleep } from 'node:timers/promises';
import { OneAtATime } from '../../src/util/one-at-a-time.js';

test('each begins when all before have ended, well or not', async () => {
  const turns = new OneAtATime();
  const seen: string[] = [];
  const work = (name: string, ms: number) => async (): Promise<string> => {
    seen.push(`${name} begins`);
    await sleep(ms);
    seen.push(`${name} ends`);
    if (name === 'b') throw new Error('b failed');
    return name;
  };
  const [a, b, c] = [turns.run(work('a', 10)), turns.run(work('b', 1)), turns.run(work('c', 1))];
  await expect(b).rejects.toThrow('b failed');
  expect([await a, await c]).toEqual(['a', 'c']);
  expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
});

test('settled waits for what was asked for so far, and hears of no failure', async () => {
  const turns = new OneAtATime();
  await turns.settled();
  let ended = 0;
  turns
    .run(async () => {
      await sleep(5);
      ended += 1;
      throw new Error('nobody hears');
    })
    .catch(() => {});
  await turns.settled();
  expect(ended).toBe(1);
});
