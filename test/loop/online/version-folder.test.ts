import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  checkVersion,
  pruneVersions,
  sweepVersions,
  versionFolder,
  writeVersion,
} from '../../../src/loop/online/version-folder.js';
import { sha256Hex } from '../../../src/util/digest.js';

const [GOOD, CHANGED, HEADLESS, UNREAD, A, B, C] = Array.from({ length: 7 }, (_, i) =>
  sha256Hex(`version ${i}`),
) as [string, string, string, string, string, string, string];

let root: string;
let from: string;
beforeEach(() => {
  root = join(mkdtempSync(join(tmpdir(), 'searchloop-versions-')), 'versions');
  from = join(root, '..', 'checkpoint');
  mkdirSync(from);
  writeFileSync(join(from, 'adapter_config.json'), '{}');
  writeFileSync(join(from, 'adapter_model.safetensors'), 'weights');
});
afterEach(() => rmSync(join(root, '..'), { recursive: true, force: true }));

test('a written version is whole and is not written twice', async () => {
  const folder = await writeVersion(root, 'v1', from);
  expect(readdirSync(folder).sort()).toEqual([
    'adapter_config.json',
    'adapter_model.safetensors',
    'manifest.json',
  ]);
  expect(await checkVersion(root, 'v1')).toBe(folder);
  // Same name, same content: what comes later does not change it.
  writeFileSync(join(from, 'adapter_model.safetensors'), 'others');
  await writeVersion(root, 'v1', from);
  await checkVersion(root, 'v1');
});

test('half-written and changed versions are refused, named, and removed by the sweep', async () => {
  await writeVersion(root, GOOD, from);
  await writeVersion(root, CHANGED, from);
  writeFileSync(join(root, CHANGED, 'adapter_model.safetensors'), 'x');
  await writeVersion(root, HEADLESS, from);
  rmSync(join(root, HEADLESS, 'manifest.json'));
  mkdirSync(join(root, '.partial-1'));
  await expect(checkVersion(root, HEADLESS)).rejects.toThrow('is half-written: it has no manifest.json');
  await expect(checkVersion(root, CHANGED)).rejects.toThrow(/sha256 \w+, expected \w+/);
  await expect(checkVersion(root, 'none')).rejects.toThrow('version none is not at');
  mkdirSync(join(root, `${GOOD}.bak`));
  const notes = await sweepVersions(root);
  expect(notes).toHaveLength(3);
  // What somebody put beside them stays.
  expect(readdirSync(root).sort()).toEqual([GOOD, `${GOOD}.bak`].sort());
  expect(await sweepVersions(root)).toEqual([]);
});

test('a version that the disk does not give just now is no damaged one: it stays', async () => {
  const folder = await writeVersion(root, UNREAD, from);
  // Reads of a folder fail with EISDIR, for whoever asks.
  const weights = join(folder, 'adapter_model.safetensors');
  rmSync(weights);
  mkdirSync(weights);
  await expect(checkVersion(root, UNREAD)).rejects.toThrow('EISDIR');
  expect(await sweepVersions(root)).toEqual([expect.stringContaining('cannot be read: EISDIR')]);
  expect(existsSync(folder)).toBe(true);
});

test('pruning keeps what is named; a root that is not there is empty', async () => {
  for (const version of [A, B, C]) await writeVersion(root, version, from);
  mkdirSync(join(root, 'copy'));
  await pruneVersions(root, new Set([B]));
  expect(readdirSync(root).sort()).toEqual([B, 'copy'].sort());
  expect(existsSync(versionFolder(root, A))).toBe(false);
  expect(await sweepVersions(join(root, 'nowhere'))).toEqual([]);
});
