import { CancelledError, NotFoundError, UnavailableError } from '../../../src/errors.js';
import { patientStore, StoreAwayError, unlessStuck } from '../../../src/loop/online/patient-store.js';
import type { TrajectoryStore } from '../../../src/trajectory/index.js';

const health = (trouble: string | null) => ({ trouble, waiting: 0, waitingBytes: 0, refused: 0 });
const over = (store: Partial<TrajectoryStore>, closed = new AbortController().signal): TrajectoryStore =>
  patientStore(store as TrajectoryStore, closed);
const never = (): Promise<never> => new Promise(() => {});

test('a store that is away is told from other trouble; all else comes through', async () => {
  const store = over({
    health: () => health('slow'),
    readDocument: async (name) => {
      if (name === 'away') throw new UnavailableError('no connection');
      if (name === 'none') throw new NotFoundError('none');
      return name;
    },
  });
  expect(store.health().trouble).toBe('slow');
  expect(await store.readDocument('a')).toBe('a');
  await expect(store.readDocument('away')).rejects.toThrow(StoreAwayError);
  await expect(store.readDocument('away')).rejects.toThrow('no connection');
  await expect(store.readDocument('none')).rejects.toThrow(NotFoundError);
});

test('once the loop has closed nothing waits for a store that does not answer; what it answers soon counts', async () => {
  const closing = new AbortController();
  const store = over(
    {
      putDocuments: never,
      readDocument: async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        return 'there';
      },
    },
    closing.signal,
  );
  const write = store.putDocuments({});
  closing.abort();
  expect(await store.readDocument('a')).toBe('there');
  await expect(write).rejects.toThrow(CancelledError);
  await expect(store.putDocuments({})).rejects.toThrow(CancelledError);
});

test('an order waits for slow work, and not for a store in trouble', async () => {
  const slow = new Promise((resolve) => setTimeout(() => resolve('done'), 400));
  expect(await unlessStuck(slow, { health: () => health(null) }, { ms: 100 })).toBe('done');
  const stuck = unlessStuck(never(), { health: () => health('disk full') }, { ms: 100 });
  await expect(stuck).rejects.toThrow('the store is away (disk full): the order is carried out');
});

test('an order whose turn does not come says what it waits for; one that has begun may take its time', async () => {
  const sound = { health: () => health(null) };
  const behind = unlessStuck(never(), sound, { turnMs: 100, waitsFor: () => 'rolling' });
  await expect(behind).rejects.toThrow('the loop is still rolling: the order is carried out when that ends');
  const slow = new Promise((resolve) => setTimeout(() => resolve('done'), 400));
  expect(await unlessStuck(slow, sound, { turnMs: 100, waitsFor: () => null })).toBe('done');
});
