import { AdapterStore } from '../../../src/engine/core/adapter-store.js';
import { fixture, tinyModel } from '../support/tiny-models.js';

async function store() {
  const { config } = (await tinyModel()).graphs;
  const adapters = new AdapterStore(config, 64);
  const versions = ['policy', 'critic'].map(
    (name) => adapters.load(fixture('lora', 'tiny-llama', name)).version,
  );
  return { adapters, versions: versions as [string, string] };
}

test('a single version has its own columns only, and the same layout every time', async () => {
  const { adapters, versions } = await store();
  const one = adapters.combination([versions[0]]);
  expect(one.layout.ranks.o).toBe(4);
  expect([...one.places]).toEqual([[versions[0], 0]]);
  expect(adapters.combination([versions[0]])).toBe(one);
  expect(adapters.load(fixture('lora', 'tiny-llama', 'policy'))).toEqual({ version: versions[0], rank: 4 });
  expect(adapters.combination([versions[0]])).toBe(one);
});

test('several versions share a layout that was made before, in whatever order they are asked for', async () => {
  const { adapters, versions } = await store();
  const both = adapters.combination(versions);
  expect(both.layout.ranks.o).toBe(8);
  expect(adapters.combination([...versions].reverse())).toBe(both);
  adapters.drop(versions[1]);
  expect(adapters.has(versions[1])).toBe(false);
  expect(() => adapters.combination(versions)).toThrow(versions[1]);
  expect(() => adapters.combination([versions[1]])).toThrow(versions[1]);
  adapters.load(fixture('lora', 'tiny-llama', 'critic'));
  expect(adapters.combination(versions)).not.toBe(both);
});
