import { setTimeout as sleep } from 'node:timers/promises';
import { LATE, within } from '../../src/util/within.js';

test('what comes in time is given as it is, also a failure', async () => {
  expect(await within(Promise.resolve('a'), 1000)).toBe('a');
  expect(await within(Promise.resolve(undefined), 1000)).toBeUndefined();
  await expect(within(Promise.reject(new Error('no')), 1000)).rejects.toThrow('no');
});

test('what is late goes on, and its failure is nobody\u2019s', async () => {
  let ended = false;
  const slow = sleep(30).then(() => {
    ended = true;
    throw new Error('late');
  });
  expect(await within(slow, 1)).toBe(LATE);
  expect(ended).toBe(false);
  await sleep(60);
  expect(ended).toBe(true);
});

test('no timer is left behind', async () => {
  const cleared = jest.spyOn(globalThis, 'clearTimeout');
  await within(Promise.resolve(), 3_600_000);
  expect(cleared).toHaveBeenCalledTimes(1);
  cleared.mockRestore();
});
