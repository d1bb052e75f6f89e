import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileFormatError, NotFoundError } from '../../src/errors.js';
import { findManifest, type ModelManifest, manifestIds, shippedAdapter } from '../../src/weights/index.js';
import { manifestSchema } from '../../src/weights/manifest.js';

const minilm = findManifest('all-minilm-l6-v2');

test('the manifests of the project are valid and named by their id', () => {
  expect(manifestIds()).toEqual(expect.arrayContaining(['all-minilm-l6-v2', 'smollm2-135m-instruct']));
  for (const id of manifestIds()) expect(findManifest(id).id).toBe(id);
});

test('the default models are the pinned files', () => {
  expect(findManifest('smollm2-135m-instruct').files[0]?.sha256).toBe(
    'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
  );
  expect(minilm.embedder).toEqual({
    queryPrefix: '',
    passagePrefix: '',
    pooling: 'mean',
    normalise: true,
    maxTokens: 256,
  });
});

const file = minilm.files[0] as ModelManifest['files'][number];
test.each([
  ['an unknown key', { ...minilm, colour: 'red' }],
  ['a path out of the folder', { ...minilm, files: [{ ...file, path: '../weights' }] }],
  ['an absolute path', { ...minilm, files: [{ ...file, path: '/weights' }] }],
  ['a short sum', { ...minilm, files: [{ ...file, sha256: 'abc' }] }],
  ['a path twice', { ...minilm, files: [file, file] }],
  ['no weights', { ...minilm, files: [{ ...file, role: 'config' }] }],
  ['an encoder without conventions', { ...minilm, embedder: null }],
  ['a decoder with conventions', { ...minilm, kind: 'decoder' }],
  ['an encoder with an adapter', { ...minilm, adapter: 'adapters/a' }],
  ['an adapter out of the folder', { ...minilm, kind: 'decoder', embedder: null, adapter: 'adapters/../x' }],
  ['an id that is a path', { ...minilm, id: '../x' }],
  ['a package that is an option', { ...minilm, sources: [{ ...minilm.sources[1], package: '--index-url' }] }],
])('refuses %s', (_why, value) => {
  expect(manifestSchema.safeParse(value).success).toBe(false);
});

test('refusals name the file and the field, or the manifests there are', () => {
  const folder = mkdtempSync(join(tmpdir(), 'manifests-'));
  try {
    writeFileSync(join(folder, 'a.json'), JSON.stringify({ ...minilm, id: 'a', licence: '' }));
    writeFileSync(join(folder, 'b.json'), JSON.stringify(minilm));
    expect(() => findManifest('a', folder)).toThrow(FileFormatError);
    expect(() => findManifest('a', folder)).toThrow(/a\.json.*[\s\S]*licence/);
    expect(() => findManifest('b', folder)).toThrow(/id is "all-minilm-l6-v2", expected "b"/);
    expect(() => findManifest('c', folder)).toThrow(NotFoundError);
    expect(() => findManifest('c', folder)).toThrow(/there are: a, b/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('an adapter comes with a policy by name and folder, or not at all', () => {
  const folder = mkdtempSync(join(tmpdir(), 'manifests-'));
  try {
    const policy = { ...minilm, kind: 'decoder', embedder: null };
    writeFileSync(
      join(folder, 'with.json'),
      JSON.stringify({ ...policy, id: 'with', adapter: 'adapters/search-1' }),
    );
    writeFileSync(join(folder, 'without.json'), JSON.stringify({ ...policy, id: 'without' }));
    expect(shippedAdapter('with', folder)).toEqual({
      name: 'search-1',
      folder: join(folder, 'adapters', 'search-1'),
    });
    expect(shippedAdapter('without', folder)).toBeNull();
    expect(shippedAdapter('imported-by-the-user', folder)).toBeNull();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
