import { setTimeout as sleep } from 'node:timers/promises';
import { sideBySide, type Work } from '../../src/util/side-by-side.js';

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
