import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkContent } from '../../../src/training/checkpoint/manifest.js';
import { commitCheckpoint } from '../../../src/training/checkpoint/store.js';
import { listCheckpoints, pruneCheckpoints } from '../../../src/training/index.js';
import { writeFileAtomic } from '../../../src/util/atomic-file.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-checkpoints-'));
afterAll(() => rmSync(folder, { recursive: true }));

let roots = 0;
const newRoot = () => join(folder, String(roots++));
const head = (version: string) => ({ version, parent: null, configDigest: 'a'.repeat(64) });
const commit = (root: string, step: number) =>
  commitCheckpoint(root, step, async (aside) => {
    await writeFileAtomic(join(aside, 'values.bin'), `values of ${step}`);
    await writeFileAtomic(join(aside, 'critic', 'values.bin'), 'more');
    return head(`v${step}`);
  });
const stepsIn = async (root: string) =>
  (await listCheckpoints(root)).checkpoints.map(({ manifest }) => manifest.step);

test('a checkpoint lists its files with sums, and any changed byte is found', async () => {
  const root = newRoot();
  const { folder: place, manifest } = await commit(root, 7);
  expect(manifest.files.map(({ path }) => path)).toEqual(['critic/values.bin', 'values.bin']);
  await checkContent(place, manifest);
  writeFileSync(join(place, 'values.bin'), 'values of 8');
  await expect(checkContent(place, manifest)).rejects.toThrow(/sha256 [0-9a-f]{64}, expected [0-9a-f]{64}/);
  expect(await stepsIn(root)).toEqual([7]);
  writeFileSync(join(place, 'values.bin'), 'short');
  const { checkpoints, faults } = await listCheckpoints(root);
  expect(checkpoints).toEqual([]);
  expect(faults[0]?.reason).toMatch(/values.bin: expected 11 bytes, found 5/);
});

test('a write that fails leaves nothing; what a kill leaves is reported, not used', async () => {
  const root = newRoot();
  await commit(root, 1);
  const failed = commitCheckpoint(root, 2, async (aside) => {
    writeFileSync(join(aside, 'half'), 'x');
    throw new Error('disk full');
  });
  await expect(failed).rejects.toThrow('disk full');
  expect(readdirSync(root)).toEqual(['step-00000001']);
  mkdirSync(join(root, '.partial-step-00000002-1-aa'));
  mkdirSync(join(root, 'step-00000003'));
  mkdirSync(join(root, 'step-00000004'));
  writeFileSync(join(root, 'step-00000004', 'manifest.json'), '{"formatVersion":1}');
  const { checkpoints, faults } = await listCheckpoints(root);
  expect(checkpoints.map(({ manifest }) => manifest.step)).toEqual([1]);
  expect(faults.map(({ reason }) => reason.replaceAll(root, ''))).toEqual([
    '/.partial-step-00000002-1-aa is half-written',
    '/step-00000003 is half-written: it has no manifest.json',
    expect.stringMatching(/step-00000004\/manifest.json: .*step/s),
  ]);
});

test('the first, the last ones and the named ones are kept', async () => {
  const root = newRoot();
  for (let step = 0; step < 8; step++) await commit(root, step);
  mkdirSync(join(root, '.partial-step-00000009-1-aa'));
  await pruneCheckpoints(root, { keepLast: 2, keep: [3] });
  expect(await stepsIn(root)).toEqual([0, 3, 6, 7]);
  expect(existsSync(join(root, '.partial-step-00000009-1-aa'))).toBe(false);
  await pruneCheckpoints(root, { keepLast: 100, keep: [] });
  expect(await stepsIn(root)).toEqual([0, 3, 6, 7]);
});

test('the checkpoint of a step that is done again takes the place of the first one', async () => {
  const root = newRoot();
  await commit(root, 1);
  const again = await commitCheckpoint(root, 1, async (aside) => {
    await writeFileAtomic(join(aside, 'values.bin'), 'other');
    return head('w');
  });
  expect(readFileSync(join(again.folder, 'values.bin'), 'utf8')).toBe('other');
  expect((await listCheckpoints(root)).checkpoints[0]?.manifest.version).toBe('w');
});
