import { AdapterStore } from '../../../src/engine/core/adapter-store.js';
import { readLaidOut } from '../../../src/engine/core/read-adapter.js';
import { layOutAdapters, readAdapter } from '../../../src/model/index.js';
import { fixture } from '../../support/fixtures.js';
import { loadAdapter, tinyModel } from '../support/tiny-models.js';

const folderOf = (name: string) => fixture('lora', 'tiny-llama', name);

async function store() {
  const { config } = (await tinyModel()).graphs;
  const adapters = new AdapterStore(config);
  const policy = await loadAdapter({ adapters }, folderOf('policy'));
  const critic = await loadAdapter({ adapters }, folderOf('critic'));
  return { adapters, config, policy, critic };
}

test('a single version has its own columns only, and the same layout every time', async () => {
  const { adapters, policy } = await store();
  const one = adapters.combination([policy]);
  expect(one.layout.ranks.o).toBe(4);
  expect([...one.places]).toEqual([[policy, 0]]);
  expect(adapters.combination([policy])).toBe(one);
  expect(await loadAdapter({ adapters }, folderOf('policy'))).toBe(policy);
  expect(adapters.combination([policy])).toBe(one);
});

test('several versions share a layout that was made before, in whatever order they are asked for', async () => {
  const { adapters, policy, critic } = await store();
  const both = adapters.combination([policy, critic]);
  expect(both.layout.ranks.o).toBe(8);
  expect(adapters.combination([critic, policy])).toBe(both);
  adapters.drop(critic);
  expect(adapters.has(critic)).toBe(false);
  expect(() => adapters.combination([policy, critic])).toThrow(critic);
  expect(() => adapters.combination([critic])).toThrow(critic);
  await loadAdapter({ adapters }, folderOf('critic'));
  expect(adapters.combination([policy, critic])).not.toBe(both);
});

test('layouts of three sets are kept beside those of single versions', async () => {
  const { adapters, config, policy, critic } = await store();
  const copied = readLaidOut(folderOf('policy'), config, 64);
  for (const version of ['x', 'y']) adapters.add({ ...copied, version });
  const versions = [policy, critic, 'x', 'y'];
  const sets = [
    [0, 1],
    [0, 2],
    [0, 3],
    [1, 2],
  ].map((pair) => adapters.combination(pair.map((i) => versions[i] as string)));
  const single = versions.map((version) => adapters.combination([version]).layout);
  const kept = [...single, ...sets.slice(1).map(({ layout }) => layout)];
  expect(adapters.layouts.size).toBe(kept.length);
  expect(kept.every((layout) => adapters.layouts.has(layout))).toBe(true);
});

test('versions put together afterwards lie as if they had been laid out together', async () => {
  const { adapters, config, policy, critic } = await store();
  const { layout } = adapters.combination([policy, critic]);
  const both = ['policy', 'critic'].map((name) => readAdapter(folderOf(name), config, { maxRank: 64 }));
  const whole = layOutAdapters(config, both);
  expect(layout.inputs).toEqual(whole.inputs);
  expect(layout.spans).toEqual(whole.spans);
  expect(layout.masks([1, null, 0])).toEqual(whole.masks([1, null, 0]));
});
