import { ConfigError } from '../../../src/errors.js';
import type { LoopHouse } from '../../../src/loop/online/house.js';
import { checkRoom, Versions } from '../../../src/loop/online/publish.js';
import { newLoopState } from '../../../src/loop/online/state.js';
import { newWatch } from '../support/watch.js';

const engine = (...names: string[]): Parameters<typeof checkRoom>[0] => ({
  listAdapters: () =>
    names.map((name) => ({
      name,
      version: name,
      rank: 4,
      leases: 0,
      path: name,
      isInternal: false,
      fault: null,
    })),
});

test('an engine without room for the versions of the loop is refused before it works, with what it takes', () => {
  const check = (most: number, ...names: string[]) => checkRoom(engine(...names), most);
  check(6);
  check(8, 'default', 'other', 'loop-0123');
  expect(() => check(7, 'default', 'other')).toThrow(ConfigError);
  expect(() => check(7, 'default', 'other')).toThrow(
    'engine.maxAdapters is 7, and the loop takes 8: 2 configured and up to 6 of its own',
  );
});

test('unloaded is what is neither live, nor on trial or tried against, nor confirmed last, nor the way back', async () => {
  const known = ['v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7'];
  const released = async (changes: object): Promise<string[]> => {
    const unloaded: string[] = [];
    const house = {
      engine: {
        ...engine('default', 'loop-training', ...known.map((version) => `loop-${version}`)),
        unloadAdapter: async (name: string) => void unloaded.push(name),
      },
    } as unknown as LoopHouse;
    const published = known.slice(0, 6).map((version, i) => ({ version, trainerStep: i, at: 0 }));
    const state = { ...newLoopState(0, 'base'), published, live: 'v6', confirmed: 'v2', ...changes };
    await new Versions(house, { version: 'base', name: null }).release(state);
    return unloaded;
  };
  expect(await released({})).toEqual(['loop-training', 'loop-v1', 'loop-v3', 'loop-v4', 'loop-v7']);
  expect(await released({ watch: newWatch({ version: 'v7', against: 'v4', share: 0.1 }) })).toEqual([
    'loop-training',
    'loop-v1',
    'loop-v3',
  ]);
  // Gone back to an old one, while what came after it is forgotten.
  const back = await released({ live: 'v3', published: [], confirmed: 'base' });
  expect(back).toEqual(
    ['training', ...known.filter((version) => version !== 'v3')].map((name) => `loop-${name}`),
  );
});
