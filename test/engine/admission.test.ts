import { Admission } from '../../src/engine/admission.js';
import { CancelledError, OverloadedError, UnavailableError } from '../../src/errors.js';

const settled = async (promise: Promise<unknown>): Promise<boolean> => {
  let done = false;
  promise.then(
    () => (done = true),
    () => (done = true),
  );
  await new Promise((resolve) => setImmediate(resolve));
  return done;
};

test('slots go first come first served and pass on at once', async () => {
  const admission = new Admission(2, 10);
  const leaveA = await admission.enter();
  await admission.enter();
  const third = admission.enter();
  const fourth = admission.enter();
  expect([admission.running, admission.queued]).toEqual([2, 2]);
  expect(await settled(third)).toBe(false);
  leaveA();
  leaveA();
  expect(await settled(third)).toBe(true);
  expect(await settled(fourth)).toBe(false);
  expect([admission.running, admission.queued]).toEqual([2, 1]);
  (await third)();
  (await fourth)();
  expect([admission.running, admission.queued]).toEqual([1, 0]);
});

test('beyond the limit it refuses at once, with a wait of at least 1 ms', async () => {
  const admission = new Admission(1, 1);
  const leave = await admission.enter();
  const waiting = admission.enter();
  const refused = await admission.enter().catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(OverloadedError);
  expect((refused as OverloadedError).retryAfterMs).toBeGreaterThanOrEqual(1);
  expect((refused as Error).message).toContain('limit is 1');
  leave();
  (await waiting)();
});

test('the wait it names follows the measured holding times', async () => {
  const admission = new Admission(1, 0);
  const waitNow = async () => {
    const refused = await admission.enter().catch((error: unknown) => error);
    return (refused as OverloadedError).retryAfterMs;
  };
  const first = await admission.enter();
  const guessed = await waitNow();
  first();
  for (let i = 0; i < 20; i++) (await admission.enter())();
  await admission.enter();
  expect(await waitNow()).toBeLessThan(guessed);
});

test('a cancelled wait leaves the line, before and while waiting', async () => {
  const admission = new Admission(1, 5);
  const leave = await admission.enter();
  await expect(admission.enter(AbortSignal.abort())).rejects.toBeInstanceOf(CancelledError);
  const controller = new AbortController();
  const waiting = admission.enter(controller.signal);
  const next = admission.enter();
  controller.abort();
  await expect(waiting).rejects.toBeInstanceOf(CancelledError);
  expect(admission.queued).toBe(1);
  leave();
  (await next)();
  expect(admission.running).toBe(0);
});

test('all who wait can be turned away', async () => {
  const admission = new Admission(1, 5);
  await admission.enter();
  const waiting = [admission.enter(), admission.enter()];
  admission.rejectWaiting(new UnavailableError('gone'));
  for (const promise of waiting) await expect(promise).rejects.toBeInstanceOf(UnavailableError);
  expect(admission.queued).toBe(0);
});
