import { setTimeout as sleep } from 'node:timers/promises';
import { CancelledError } from '../../src/errors.js';
import { eachOf, sideBySide, type Work } from '../../src/util/side-by-side.js';

test('with the first failure the others are stopped, and all have ended when it is thrown', async () => {
  const ended: string[] = [];
  const slow: Work = async (stop) => {
    await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }));
    await sleep(5);
    ended.push('slow');
    throw new Error('stopped');
  };
  const failing: Work = async () => {
    await sleep(1);
    throw new Error('first');
  };
  await expect(sideBySide([slow, failing, slow])).rejects.toThrow('first');
  expect(ended).toEqual(['slow', 'slow']);
});

test('the signal of the caller stops all; without a failure nobody is stopped', async () => {
  const caller = new AbortController();
  const stops: boolean[] = [];
  const work: Work = async (stop) => {
    await sleep(1);
    stops.push(stop.aborted);
  };
  await sideBySide([work, work], caller.signal);
  caller.abort();
  await sideBySide([work], caller.signal);
  expect(stops).toEqual([false, false, true]);
  await sideBySide([]);
});

test('each item once, in order, so many at once', async () => {
  let running = 0;
  let most = 0;
  const seen: [string, number][] = [];
  await eachOf(['a', 'b', 'c', 'd', 'e'], 2, async (item, at) => {
    most = Math.max(most, ++running);
    seen.push([item, at]);
    await sleep(at === 0 ? 10 : 1);
    running -= 1;
  });
  expect(seen).toEqual([
    ['a', 0],
    ['b', 1],
    ['c', 2],
    ['d', 3],
    ['e', 4],
  ]);
  expect(most).toBe(2);
  await eachOf([], 4, () => Promise.reject(new Error('nothing to do')));
});

test('after a failure, or when the caller stops, nothing new is begun', async () => {
  const begun: number[] = [];
  const failing = eachOf([0, 1, 2, 3], 2, async (item, _at, stop) => {
    begun.push(item);
    if (item === 1) throw new Error('first');
    await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }));
  });
  await expect(failing).rejects.toThrow('first');
  expect(begun).toEqual([0, 1]);
  const caller = new AbortController();
  const stopped = eachOf(
    [0, 1, 2],
    1,
    async (item) => {
      begun.push(item);
      caller.abort();
      throw new Error('however it ended');
    },
    caller.signal,
  );
  await expect(stopped).rejects.toThrow(CancelledError);
  await expect(eachOf([7], 1, async (item) => void begun.push(item), caller.signal)).rejects.toThrow(
    CancelledError,
  );
  expect(begun).toEqual([0, 1, 0]);
});
