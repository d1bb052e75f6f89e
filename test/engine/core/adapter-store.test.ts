import { AdapterStore } from '../../../src/engine/core/adapter-store.js';
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

test('versions put together afterwards lie as if they had been laid out together', async () => {
  const { adapters, config, policy, critic } = await store();
  const { layout } = adapters.combination([policy, critic]);
  const both = ['policy', 'critic'].map((name) => readAdapter(folderOf(name), config, { maxRank: 64 }));
  const whole = layOutAdapters(config, both);
  expect(layout.inputs).toEqual(whole.inputs);
  expect(layout.spans).toEqual(whole.spans);
  expect(layout.masks([1, null, 0])).toEqual(whole.masks([1, null, 0]));
});
