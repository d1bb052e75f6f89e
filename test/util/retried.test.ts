import { CancelledError } from '../../src/errors.js';
import { retried } from '../../src/util/retried.js';

function failing(times: number, error: () => Error = () => new Error('away')) {
  let calls = 0;
  return {
    work: async () => {
      if (++calls <= times) throw error();
      return 'done';
    },
    calls: () => calls,
  };
}

test('work is tried again as often as said, and no more', async () => {
  const twice = failing(2);
  expect(await retried(twice.work, { retries: 2, pauseMs: 1 })).toBe('done');
  const thrice = failing(3);
  await expect(retried(thrice.work, { retries: 2, pauseMs: 1 })).rejects.toThrow('away');
  expect([twice.calls(), thrice.calls()]).toEqual([3, 3]);
});

test('what will not pass is not tried again', async () => {
  const { work, calls } = failing(1);
  await expect(retried(work, { retries: 9, pauseMs: 1, mayPass: () => false })).rejects.toThrow('away');
  const cancelled = failing(1, () => new CancelledError());
  await expect(retried(cancelled.work, { retries: 9, pauseMs: 1 })).rejects.toThrow(CancelledError);
  expect([calls(), cancelled.calls()]).toEqual([1, 1]);
});

test('a signal ends a pause, and the failure it led to is no failure', async () => {
  const { work, calls } = failing(9);
  const signal = AbortSignal.timeout(20);
  await expect(retried(work, { retries: 9, pauseMs: 60_000, signal })).rejects.toThrow(CancelledError);
  await expect(retried(work, { retries: 9, pauseMs: 1, signal })).rejects.toThrow(CancelledError);
  expect(calls()).toBe(1);
});
