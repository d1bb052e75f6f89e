import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readLaidOut } from '../../../src/engine/core/read-adapter.js';
import { FileFormatError, InvalidInputError } from '../../../src/errors.js';
import { type Binding, type OnnxRuntime, openRuntime } from '../../../src/runtime/index.js';
import { openWeights, writeSafetensors } from '../../../src/weights/index.js';
import { fixture, readJson } from '../../support/fixtures.js';
import {
  ask,
  loadAdapter,
  openCore,
  type SteppedCore,
  tinyModel,
  turnOptions,
} from '../support/tiny-models.js';

const POLICY = fixture('lora', 'tiny-llama', 'policy');
const CRITIC = fixture('lora', 'tiny-llama', 'critic');

const prompts: number[][] = readJson('lora', 'tiny-llama', 'batch.json')
  .sequences.slice(0, 3)
  .map((sequence: { tokenIds: number[] }) => sequence.tokenIds);
const prompt = prompts[0] as number[];

const folder = mkdtempSync(join(tmpdir(), 'searchloop-adapters-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The policy adapter with its weights changed. */
async function changed(name: string, change: (value: number, tensor: string) => number): Promise<string> {
  const target = join(folder, name);
  cpSync(POLICY, target, { recursive: true });
  const source = openWeights(join(POLICY, 'adapter_model.safetensors'));
  const tensors = [...source.tensors.values()].map((tensor) => ({
    name: tensor.name,
    shape: tensor.shape,
    type: 'F32' as const,
    data: () => source.readFloat32(tensor.name).map((value) => change(value, tensor.name)),
  }));
  await writeSafetensors(join(target, 'adapter_model.safetensors'), tensors);
  return target;
}

const greedy = turnOptions({ maxTokens: 12 }, { temperature: 0 });

/** Greedy ids and log-probabilities of one prompt under one version, in an engine of its own. */
async function alone(ids: readonly number[], adapter: string | null) {
  const stepped = await openCore();
  const version = adapter === null ? 'base' : await loadAdapter(stepped, adapter);
  stepped.send(...ask(1, ids, greedy, { version }));
  await stepped.settle();
  return stepped.heard(1);
}

const logprobsOf = ({ steps }: { steps: readonly { logprob: number }[] }) =>
  steps.map((step) => step.logprob);

function expectSame(
  found: ReturnType<SteppedCore['heard']>,
  expected: ReturnType<SteppedCore['heard']>,
): void {
  expect(found.ids).toEqual(expected.ids);
  logprobsOf(found).forEach((value, i) => {
    expect(Math.abs(value - (logprobsOf(expected)[i] as number))).toBeLessThan(1e-4);
  });
}

test('the first token under an adapter has the stored log-probability', async () => {
  const stored = openWeights(fixture('lora', 'tiny-llama', 'logits.safetensors'));
  for (const [index, ids] of prompts.entries()) {
    const logits = stored.readFloat32(`logits.${index}`).slice(-512);
    const top = Math.max(...logits);
    const normaliser = top + Math.log(logits.reduce((sum, value) => sum + Math.exp(value - top), 0));
    const { ids: found, steps } = await alone(ids, POLICY);
    expect(logits[found[0] as number]).toBe(top);
    expect(Math.abs((steps[0]?.logprob as number) - (top - normaliser))).toBeLessThan(1e-4);
  }
});

test('one run serves base and two versions side by side; each row is as if alone', async () => {
  const cold = [await alone(prompt, null), await alone(prompt, POLICY), await alone(prompt, CRITIC)];
  expect(new Set(cold.map(({ ids }) => ids.join())).size).toBe(3);
  const stepped = await openCore();
  const versions = ['base', await loadAdapter(stepped, POLICY), await loadAdapter(stepped, CRITIC)];
  for (const [i, version] of versions.entries()) stepped.send(...ask(i, prompt, greedy, { version }));
  await stepped.settle();
  for (const i of versions.keys()) expectSame(stepped.heard(i), cold[i] as (typeof cold)[0]);
  // All three were decoded in the same runs, save for the rounds at the ends.
  const { decodeRows, decodeSteps } = stepped.core.profile;
  expect(decodeRows / decodeSteps).toBeGreaterThan(2);
});

test('versions that come and go in a running batch change nothing for the others', async () => {
  const cold = await alone(prompt, POLICY);
  const stepped = await openCore();
  const policy = await loadAdapter(stepped, POLICY);
  const critic = await loadAdapter(stepped, CRITIC);
  stepped.send(...ask(1, prompt, greedy, { version: policy }));
  for (let i = 0; i < 4; i++) await stepped.tick();
  stepped.send(...ask(2, prompt, turnOptions({ maxTokens: 3 }), { version: critic }));
  for (let i = 0; i < 3; i++) await stepped.tick();
  stepped.send(...ask(3, prompt, greedy));
  await stepped.settle();
  expectSame(stepped.heard(1), cold);
  expect(stepped.heard(3).ids).toEqual((await alone(prompt, null)).ids);
});

test('keys and values made under one version are never used under another', async () => {
  const cold = [await alone(prompt, CRITIC), await alone(prompt, null)];
  const stepped = await openCore();
  const policy = await loadAdapter(stepped, POLICY);
  const critic = await loadAdapter(stepped, CRITIC);
  stepped.send(...ask(1, prompt, greedy, { version: policy }));
  await stepped.settle();
  stepped.send({ kind: 'close', sequence: 1 });
  stepped.send(...ask(2, prompt, greedy, { version: critic }), ...ask(3, prompt, greedy));
  await stepped.settle();
  expect(stepped.core.profile.sharedTokens).toBe(0);
  expectSame(stepped.heard(2), cold[0] as (typeof cold)[0]);
  expectSame(stepped.heard(3), cold[1] as (typeof cold)[0]);
  stepped.send(...ask(4, prompt, greedy, { version: critic }));
  await stepped.settle();
  expect(stepped.core.profile.sharedTokens).toBe(prompt.length - 1);
  expectSame(stepped.heard(4), cold[0] as (typeof cold)[0]);
});

test('a dropped version leaves nothing behind; a sequence that still asks for it fails by name', async () => {
  const stepped = await openCore();
  const version = await loadAdapter(stepped, POLICY);
  stepped.send(...ask(1, prompt, greedy, { version }));
  await stepped.settle();
  stepped.send({ kind: 'close', sequence: 1 });
  await stepped.settle();
  stepped.core.dropAdapter(version);
  stepped.send(...ask(2, prompt, greedy, { version }));
  await stepped.settle();
  expect(stepped.heard(2).failure?.error.message).toContain(version);
  expect(await loadAdapter(stepped, POLICY)).toBe(version);
  stepped.send(...ask(3, prompt, greedy, { version }));
  await stepped.settle();
  expect(stepped.core.profile.sharedTokens).toBe(0);
  expect(stepped.heard(3).ids).toEqual(stepped.heard(1).ids);
});

describe('a version that is dropped while a run is under way', () => {
  /** Runs of the binding block no thread: what comes before this resolves comes in the middle of one. */
  const withinRun = () => new Promise<void>((resolve) => process.nextTick(resolve));

  test.each(['step', 'prompt'])(
    'within a %s: after the close before it, and nobody else is harmed',
    async (kind) => {
      const cold = [await alone(prompt, CRITIC), await alone(prompt.slice(4), null)];
      const stepped = await openCore({}, undefined, await openRuntime('binding'));
      const policy = await loadAdapter(stepped, POLICY);
      const critic = await loadAdapter(stepped, CRITIC);
      stepped.send(
        ...ask(1, prompt, greedy, { version: policy }),
        ...ask(2, prompt, greedy, { version: critic }),
      );
      while ([1, 2].some((id) => stepped.heard(id).ids.length === 0)) await stepped.tick();
      if (kind === 'prompt') stepped.send(...ask(3, prompt.slice(4), greedy));
      const round = stepped.tick();
      await withinRun();
      stepped.send({ kind: 'close', sequence: 1 });
      stepped.core.dropAdapter(policy);
      await round;
      await stepped.settle();
      expect(stepped.adapters.has(policy)).toBe(false);
      expectSame(stepped.heard(2), cold[0] as (typeof cold)[0]);
      if (kind === 'prompt') expectSame(stepped.heard(3), cold[1] as (typeof cold)[0]);
    },
  );

  test('and loaded again before the next round, it is there', async () => {
    const cold = await alone(prompt, POLICY);
    const stepped = await openCore();
    const version = await loadAdapter(stepped, POLICY);
    stepped.core.dropAdapter(version);
    stepped.core.addAdapter(readLaidOut(POLICY, (await tinyModel()).graphs.config, 64));
    stepped.send(...ask(1, prompt, greedy, { version }));
    await stepped.settle();
    expectSame(stepped.heard(1), cold);
  });
});

/** Notes what each open binding has as `input`. */
function noting(runtime: OnnxRuntime, input: string, held: Map<Binding, unknown>): OnnxRuntime {
  const noted = (binding: Binding): Binding => ({
    ...binding,
    bindInput(name, view) {
      if (name === input) held.set(binding, view.data);
      binding.bindInput(name, view);
    },
    close() {
      held.delete(binding);
      binding.close();
    },
  });
  return {
    ...runtime,
    async openSession(file, options) {
      const session = await runtime.openSession(file, options);
      return { ...session, createBinding: () => noted(session.createBinding()) };
    },
  };
}

test('no binding holds on to weights that the store let go of', async () => {
  const held = new Map<Binding, unknown>();
  const input = 'lora.0.o.a';
  const stepped = await openCore({ maxSequences: 8 }, undefined, noting(await openRuntime(), input, held));
  const copied = readLaidOut(POLICY, (await tinyModel()).graphs.config, 64);
  const versions = [0, 1, 2, 3, 4, 5, 6].map((i) => `copy-${i}`);
  for (const version of versions) stepped.adapters.add({ ...copied, version });
  const stale = () => {
    const kept = new Set<unknown>([...stepped.adapters.layouts].map(({ inputs }) => inputs[input]?.data));
    return [...held.values()].filter((data) => !kept.has(data)).length;
  };
  let next = 0;
  // Each pair among fewer of the base model than the one before, so that a wider window's binding stays with that one.
  for (const [i, version] of versions.slice(1).entries()) {
    const company = ['copy-0', version, ...Array<string>(6 - i).fill('base')];
    const ids = company.map((adapter) => {
      stepped.send(...ask(next, prompt, greedy, { version: adapter }));
      return next++;
    });
    await stepped.settle();
    for (const sequence of ids) stepped.send({ kind: 'close', sequence });
    await stepped.settle();
  }
  expect(held.size).toBeGreaterThan(0);
  expect(stale()).toBe(0);
  stepped.core.dropAdapter('copy-0');
  await stepped.tick();
  expect(stale()).toBe(0);
});

test('an adapter with NaN, infinity or an absurd weight is refused when it is loaded', async () => {
  const stepped = await openCore();
  for (const [name, value] of [
    ['nan', Number.NaN],
    ['infinite', Number.POSITIVE_INFINITY],
  ] as const) {
    const bad = await changed(name, (old, tensor) => (tensor.includes('v_proj.lora_A') ? value : old));
    await expect(loadAdapter(stepped, bad)).rejects.toThrow(FileFormatError);
  }
  const huge = await changed('huge', (old, tensor) => (tensor.includes('v_proj.lora_A') ? 1e30 : old));
  await expect(loadAdapter(stepped, huge)).rejects.toThrow(InvalidInputError);
  await expect(loadAdapter(stepped, huge)).rejects.toThrow(/lora_A of v in layer 0/);
});

test('an adapter as large as is accepted harms nobody but its own sequence', async () => {
  const wild = await changed(
    'wild',
    (old, tensor) => Math.sign(old) * (tensor.includes('lora_A') ? 1e6 : 5e5),
  );
  const cold = [await alone(prompt, null), await alone(prompt, POLICY)];
  const stepped = await openCore();
  const policy = await loadAdapter(stepped, POLICY);
  stepped.send(...ask(1, prompt, greedy), ...ask(2, prompt, greedy, { version: policy }));
  stepped.send(...ask(3, prompt, greedy, { version: await loadAdapter(stepped, wild) }));
  await stepped.settle();
  expectSame(stepped.heard(1), cold[0] as (typeof cold)[0]);
  expectSame(stepped.heard(2), cold[1] as (typeof cold)[0]);
});

test('logits that are not finite end their sequence by name; the others in the same runs go on unharmed', async () => {
  const cold = [await alone(prompt, null), await alone(prompt, POLICY)];
  const stepped = await openCore();
  const policy = await loadAdapter(stepped, POLICY);
  stepped.send(...ask(1, prompt, greedy), ...ask(2, prompt, greedy, { version: policy }));
  while ([1, 2].some((id) => stepped.heard(id).ids.length === 0)) await stepped.tick();
  stepped.send(...ask(3, prompt.slice(4), greedy, { version: policy }));
  while (stepped.heard(3).ids.length < 2) await stepped.tick();
  // As if the adapter had overflowed while the prompt of the third sequence was read.
  const [keys] = stepped.model.memory.views(2, 1);
  keys?.data.fill(Number.NaN as never);
  await stepped.settle();
  expect(stepped.heard(3).ids.length).toBe(2);
  expect(stepped.heard(3).failure?.error).toMatchObject({ kind: 'non_finite' });
  expect(stepped.heard(3).failure?.error.message).toContain(policy);
  expectSame(stepped.heard(1), cold[0] as (typeof cold)[0]);
  expectSame(stepped.heard(2), cold[1] as (typeof cold)[0]);
  // Nothing of its slot is shared, and the next one there is unharmed.
  for (const id of [4, 5]) stepped.send(...ask(id, prompt, greedy));
  stepped.send({ kind: 'close', sequence: 1 }, ...ask(6, prompt, greedy));
  await stepped.settle();
  for (const id of [4, 5, 6]) expect(stepped.heard(id).ids).toEqual(cold[0]?.ids);
});
