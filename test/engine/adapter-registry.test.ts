import { AdapterRegistry, type AdapterResidence } from '../../src/engine/adapter-registry.js';
import { EngineAwayError } from '../../src/engine/index.js';
import { InvalidInputError, NotFoundError, UnavailableError } from '../../src/errors.js';

/** A residence whose folders hold the versions that a test says. */
function residence(folders: Record<string, string>) {
  const resident: string[] = [];
  const log: string[] = [];
  const parts: AdapterResidence = {
    async load(folder) {
      await new Promise((resolve) => setImmediate(resolve));
      const version = folders[folder];
      if (version === undefined) throw new NotFoundError(`${folder} does not exist`);
      log.push(`load ${version}`);
      if (!resident.includes(version)) resident.push(version);
      return { version, rank: 4 };
    },
    drop(version) {
      log.push(`drop ${version}`);
      resident.splice(resident.indexOf(version), 1);
    },
  };
  return { parts, resident, log, folders };
}

test('a name keeps its version unless replace is said; the same content again is fine', async () => {
  const { parts, resident } = residence({ one: 'v1', copy: 'v1', two: 'v2' });
  const registry = new AdapterRegistry(parts, 4);
  const first = await registry.load('a', 'one');
  expect(first).toEqual({
    name: 'a',
    version: 'v1',
    rank: 4,
    leases: 0,
    path: 'one',
    isInternal: false,
    fault: null,
  });
  expect((await registry.load('a', 'copy')).version).toBe('v1');
  await expect(registry.load('a', 'two')).rejects.toThrow(/v1.*v2/);
  expect(resident).toEqual(['v1']);
  expect((await registry.load('a', 'two', { replace: true })).version).toBe('v2');
  expect(resident).toEqual(['v2']);
});

test('a lease keeps its version resident after unload and replace, and new sequences do not get it', async () => {
  const { parts, resident } = residence({ one: 'v1', two: 'v2' });
  const registry = new AdapterRegistry(parts, 4);
  await registry.load('a', 'one');
  const lease = registry.lease('a');
  const other = registry.lease('v1');
  expect(registry.list()[0]?.leases).toBe(2);
  await registry.load('a', 'two', { replace: true });
  expect(registry.lease('a').version).toBe('v2');
  expect(() => registry.lease('v1')).toThrow(NotFoundError);
  lease.release();
  lease.release();
  expect(resident).toEqual(['v1', 'v2']);
  other.release();
  expect(resident).toEqual(['v2']);
});

test('twenty loads of one name at once give one version and no error', async () => {
  const { parts, resident } = residence({ one: 'v1' });
  const registry = new AdapterRegistry(parts, 1);
  const infos = await Promise.all(Array.from({ length: 20 }, () => registry.load('a', 'one')));
  expect(new Set(infos.map((info) => info.version))).toEqual(new Set(['v1']));
  expect(resident).toEqual(['v1']);
});

test('loads, unloads and leases in any order: a lease is the right version or an error, never the base', async () => {
  const { parts, resident } = residence({ one: 'v1' });
  const registry = new AdapterRegistry(parts, 1);
  const outcomes: string[] = [];
  await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      if (i % 3 === 0) await registry.load('a', 'one');
      else if (i % 3 === 1) await registry.unload('a').catch(() => {});
      try {
        const lease = registry.lease('a');
        outcomes.push(lease.version);
        expect(resident).toContain(lease.version);
        await new Promise((resolve) => setImmediate(resolve));
        expect(resident).toContain(lease.version);
        lease.release();
      } catch (error) {
        expect(error).toBeInstanceOf(NotFoundError);
        outcomes.push('not found');
      }
    }),
  );
  expect(new Set(outcomes)).toEqual(new Set(['v1', 'not found']));
});

test('the number of versions is bounded, draining ones included; replacing an unused one needs no room', async () => {
  const { parts, resident } = residence({ one: 'v1', two: 'v2', three: 'v3' });
  const registry = new AdapterRegistry(parts, 1);
  await registry.load('a', 'one');
  await expect(registry.load('b', 'two')).rejects.toThrow(/at most 1/);
  expect(resident).toEqual(['v1']);
  await registry.load('a', 'two', { replace: true });
  const lease = registry.lease('a');
  await expect(registry.load('a', 'three', { replace: true })).rejects.toThrow(EngineAwayError);
  await expect(registry.load('b', 'three')).rejects.toThrow(InvalidInputError);
  expect(registry.lease('a').version).toBe('v2');
  await registry.unload('a');
  // Only its sequences have it: there will be room.
  await expect(registry.load('b', 'three')).rejects.toThrow(EngineAwayError);
  lease.release();
});

test('the live alias follows its name, null is the base, and a live adapter cannot be unloaded', async () => {
  const { parts } = residence({ one: 'v1', two: 'v2' });
  const registry = new AdapterRegistry(parts, 4);
  expect(registry.lease(undefined).version).toBe('base');
  expect(() => registry.setLive('a')).toThrow(NotFoundError);
  await registry.load('a', 'one');
  registry.setLive('a');
  expect(registry.lease(undefined).version).toBe('v1');
  expect(registry.lease(null).version).toBe('base');
  await registry.load('a', 'two', { replace: true });
  expect(registry.lease(undefined).version).toBe('v2');
  expect(registry.live?.version).toBe('v2');
  await expect(registry.unload('a')).rejects.toThrow(/live/);
  registry.setLive(null);
  await registry.unload('a');
  expect(registry.list()).toEqual([]);
  await expect(registry.unload('a')).rejects.toThrow(NotFoundError);
});

test('a failed load changes nothing', async () => {
  const { parts, log } = residence({ one: 'v1' });
  const registry = new AdapterRegistry(parts, 4);
  await registry.load('a', 'one');
  await expect(registry.load('a', 'missing', { replace: true })).rejects.toThrow(NotFoundError);
  expect(registry.lease('a').version).toBe('v1');
  expect(log).toEqual(['load v1']);
  for (const name of ['', 'base'])
    await expect(registry.load(name, 'one')).rejects.toThrow(InvalidInputError);
});

test('a new worker gets every adapter again; one whose folder changed is lost, not exchanged', async () => {
  const { parts, resident, folders } = residence({ one: 'v1', two: 'v2' });
  const registry = new AdapterRegistry(parts, 4);
  await registry.load('a', 'one');
  await registry.load('b', 'two');
  resident.length = 0;
  folders['two'] = 'v3';
  const faults = await registry.reload();
  expect(faults).toMatchObject([{ name: 'b', mayReturn: false, error: { code: 'integrity_mismatch' } }]);
  expect(registry.list().map(({ name, version }) => [name, version])).toEqual([['a', 'v1']]);
  expect(() => registry.lease('b')).toThrow(NotFoundError);
});

test('a live adapter that a new worker lacks is an error that names it, until it is back; never the base', async () => {
  const { parts, folders } = residence({ one: 'v1' });
  const registry = new AdapterRegistry(parts, 4);
  await registry.load('a', 'one');
  registry.setLive('a');
  delete folders['one'];
  expect(await registry.reload()).toMatchObject([{ name: 'a', mayReturn: false }]);
  for (const asked of [undefined, 'a', 'v1']) expect(() => registry.lease(asked)).toThrow(UnavailableError);
  expect(() => registry.lease(undefined)).toThrow(/"a".*one does not exist/);
  expect(registry.lease(null).version).toBe('base');
  expect(registry.list()).toEqual([]);
  expect(registry.live).toMatchObject({ name: 'a', version: 'v1', fault: 'one does not exist' });
  folders['copy'] = 'v1';
  await registry.load('a', 'copy');
  expect(registry.lease(undefined).version).toBe('v1');
  expect(registry.live).toMatchObject({ fault: null });
});

test('adapters for which the worker could not be asked stay and are tried again', async () => {
  const { parts, resident } = residence({ one: 'v1', two: 'v2' });
  let isAway = false;
  const load = (folder: string) =>
    isAway ? Promise.reject(new UnavailableError('the worker restarts')) : parts.load(folder);
  const registry = new AdapterRegistry({ ...parts, load }, 4);
  await registry.load('a', 'one');
  await registry.load('b', 'two');
  registry.setLive('a');
  resident.length = 0;
  isAway = true;
  const faults = await registry.reload();
  expect(faults.map(({ name, mayReturn }) => [name, mayReturn])).toEqual([
    ['a', true],
    ['b', true],
  ]);
  for (const asked of [undefined, 'b']) expect(() => registry.lease(asked)).toThrow(UnavailableError);
  isAway = false;
  expect(await registry.retry()).toEqual([]);
  expect(registry.lease(undefined).version).toBe('v1');
  expect(registry.lease('b').version).toBe('v2');
  expect(resident).toEqual(['v1', 'v2']);
  // What is there is not loaded twice.
  resident.length = 0;
  await registry.retry();
  expect(resident).toEqual([]);
});
