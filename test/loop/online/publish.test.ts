import { ConfigError } from '../../../src/errors.js';
import { checkRoom } from '../../../src/loop/online/publish.js';

const engine = (...names: string[]): Parameters<typeof checkRoom>[0] => ({
  listAdapters: () =>
    names.map((name) => ({ name, version: name, rank: 4, leases: 0, path: name, fault: null })),
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
