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
import { dirname, join } from 'node:path';
import type { HubEnvironment } from '../../../src/config/index.js';
import { CancelledError, DownloadError, IntegrityError, InvalidInputError } from '../../../src/errors.js';
import {
  type ModelManifest,
  parseHubReference,
  pullModel,
  pullRepository,
} from '../../../src/weights/index.js';
import { manifestSchema } from '../../../src/weights/manifest.js';
import { COMMIT, gitSha1, type HubServer, sha256, startHub } from '../../support/hub-server.js';

/** Bytes that do not repeat within a file. */
const noise = (length: number, seed: number): Buffer => {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let i = 0; i < length; i += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
};

const REPO = 'someone/model';
const weights = noise(1_000_000, 1);
const files = {
  'model.safetensors': weights,
  'config.json': Buffer.from('{"model_type":"llama"}'),
  'tokenizer.json': noise(5000, 2),
  'README.md': Buffer.from('# not fetched'),
};

let home: string;
let hub: HubServer;
let environment: HubEnvironment;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'pull-'));
  hub = await startHub(REPO, files);
  environment = { endpoint: hub.endpoint, token: null, offline: false };
});
afterEach(async () => {
  await hub.close();
  rmSync(home, { recursive: true, force: true });
});

function manifest(names: readonly (keyof typeof files)[] = ['model.safetensors']): ModelManifest {
  return manifestSchema.parse({
    formatVersion: 1,
    id: 'it',
    title: 'It',
    kind: 'decoder',
    licence: 'Apache-2.0',
    architecture: 'llama',
    files: names.map((path) => ({
      path,
      role: path === 'model.safetensors' ? 'weights' : 'config',
      sizeBytes: files[path].length,
      sha256: sha256(files[path]),
    })),
    sources: [{ type: 'hub', repo: REPO, revision: COMMIT }],
    embedder: null,
  });
}

const blob = (bytes: Buffer): string => join(home, 'downloads', 'sha256', sha256(bytes));
const partials = (): string[] => {
  const folder = join(home, 'downloads', 'partial');
  return existsSync(folder) ? readdirSync(folder) : [];
};

test('files come through the redirect, once, and lie in the cache under their sums', async () => {
  const pulled = await pullModel(manifest(['model.safetensors', 'config.json']), home, { hub: environment });
  expect(pulled.map(({ file }) => file)).toEqual([blob(weights), blob(files['config.json'])]);
  expect(readFileSync(blob(weights)).equals(weights)).toBe(true);
  await pullModel(manifest(['model.safetensors', 'config.json']), home, { hub: environment });
  expect(hub.transfers.map(({ path }) => path)).toEqual(['model.safetensors', 'config.json']);
  expect(partials()).toEqual([]);
});

test('the token goes to the hub and to nobody else', async () => {
  await pullModel(manifest(), home, { hub: { ...environment, token: 'hf_secret' } });
  expect([...hub.tokens.hub]).toEqual(['Bearer hf_secret']);
  expect([...hub.tokens.store]).toEqual([]);
});

test('a cut transfer goes on where it was cut, and progress never runs back', async () => {
  hub.faults.cuts = [300_000, 200_000];
  const seen: number[] = [];
  await pullModel(manifest(), home, { hub: environment, onProgress: ({ done }) => seen.push(done) });
  expect(readFileSync(blob(weights)).equals(weights)).toBe(true);
  expect(hub.transfers).toHaveLength(3);
  expect(hub.transfers[0]?.range).toBeNull();
  for (const { range } of hub.transfers.slice(1)) expect(range).toMatch(/^bytes=[1-9]\d*-$/);
  expect(hub.transfers.reduce((sum, { bytesSent }) => sum + bytesSent, 0)).toBeLessThan(weights.length * 1.3);
  expect(seen).toEqual([...seen].sort((a, b) => a - b));
  expect(seen.at(-1)).toBe(weights.length);
});

test('an aborted pull keeps its part, never uses it, and the next one continues it', async () => {
  const controller = new AbortController();
  const pull = pullModel(manifest(), home, {
    hub: environment,
    signal: controller.signal,
    onProgress: ({ done }) => done > 400_000 && controller.abort(),
  });
  await expect(pull).rejects.toThrow(CancelledError);
  expect(existsSync(blob(weights))).toBe(false);
  expect(partials()).toHaveLength(1);
  await pullModel(manifest(), home, { hub: environment });
  expect(readFileSync(blob(weights)).equals(weights)).toBe(true);
  const from = Number(/bytes=(\d+)-/.exec(hub.transfers.at(-1)?.range ?? '')?.[1]);
  expect(from).toBeGreaterThan(400_000 - 65_536);
  expect(partials()).toEqual([]);
});

test('a server that cannot continue is asked for all of it', async () => {
  hub.faults.cuts = [300_000];
  hub.faults.ignoreRange = true;
  await pullModel(manifest(), home, { hub: environment });
  expect(readFileSync(blob(weights)).equals(weights)).toBe(true);
  expect(hub.transfers.map(({ range }) => range)).toEqual([null, expect.stringMatching(/^bytes=/), null]);
});

test('wrong bytes are refused with both sums and removed', async () => {
  const wrong = noise(weights.length, 9);
  hub.faults.replaced = { 'model.safetensors': wrong };
  const pull = pullModel(manifest(), home, { hub: environment });
  await expect(pull).rejects.toThrow(IntegrityError);
  await expect(pull).rejects.toThrow(new RegExp(`expected ${sha256(weights)}, got ${sha256(wrong)}`));
  expect(partials()).toEqual([]);
  expect(existsSync(blob(weights))).toBe(false);
  expect(existsSync(blob(wrong))).toBe(false);
});

test('a sum that is none is refused before anything is written', async () => {
  for (const listedSum of ['../../../../escaped', 'A'.repeat(64), '', sha256(weights).slice(1)]) {
    hub.faults.listedSum = listedSum;
    const pull = pullRepository({ repo: REPO, file: null, revision: null }, home, { hub: environment });
    await expect(pull).rejects.toThrow(IntegrityError);
    await expect(pull).rejects.toThrow('expected a sha256 of 64 hexadecimal digits');
  }
  expect(readdirSync(home)).toEqual([]);
  expect(hub.transfers).toEqual([]);
});

test('a file of another size is refused before it is fetched', async () => {
  hub.faults.replaced = { 'model.safetensors': weights.subarray(1) };
  await expect(pullModel(manifest(), home, { hub: environment })).rejects.toThrow(
    /expected 1000000 bytes, the hub has 999999/,
  );
  expect(hub.transfers).toEqual([]);
});

test('a kept part that is wrong is thrown away and all is fetched once more', async () => {
  const folder = join(home, 'downloads', 'partial');
  mkdirSync(folder, { recursive: true });
  // Of a process that is gone: no process has this id.
  writeFileSync(join(folder, `${sha256(weights)}.00000000.0.00000000.partial`), noise(300_000, 5));
  await pullModel(manifest(), home, { hub: environment });
  expect(readFileSync(blob(weights)).equals(weights)).toBe(true);
  expect(hub.transfers.map(({ range }) => range)).toEqual(['bytes=300000-', null]);
});

describe('a hub that fails', () => {
  test.each([
    [401, /status 401, access refused \(HF_TOKEN/],
    [403, /status 403, access refused/],
    [404, /status 404, not found/],
    [503, /status 503, the hub failed/],
  ])('status %i', async (status, message) => {
    hub.faults.status = status;
    const pull = pullModel(manifest(), home, { hub: environment });
    await expect(pull).rejects.toThrow(DownloadError);
    await expect(pull).rejects.toThrow(message);
  });

  test('a file that the repository lacks', async () => {
    const other = manifest();
    const pull = pullModel(
      {
        ...other,
        files: [{ ...(other.files[0] as ModelManifest['files'][number]), path: 'none.safetensors' }],
      },
      home,
      { hub: environment },
    );
    await expect(pull).rejects.toThrow(/has no file none\.safetensors/);
  });

  test('one that cannot be reached is left within seconds, and the message says how to place the file', async () => {
    await hub.close();
    const pull = pullModel(manifest(), home, { hub: environment });
    await expect(pull).rejects.toThrow(DownloadError);
    await expect(pull).rejects.toThrow(/cannot be reached: connect ECONNREFUSED/);
    await expect(pull).rejects.toThrow(`-> ${blob(weights)}`);
  });

  test('one that does not answer is left within seconds', async () => {
    hub.faults.silent = true;
    await expect(pullModel(manifest(), home, { hub: environment })).rejects.toThrow(/no answer within 8 s/);
  });

  test('HF_HUB_OFFLINE leaves it alone', async () => {
    await expect(pullModel(manifest(), home, { hub: { ...environment, offline: true } })).rejects.toThrow(
      /HF_HUB_OFFLINE/,
    );
    expect(hub.transfers).toEqual([]);
  });
});

describe('a file placed by hand', () => {
  const place = (bytes: Buffer): void => {
    mkdirSync(dirname(blob(weights)), { recursive: true });
    writeFileSync(blob(weights), bytes);
  };

  test('is taken when it is right', async () => {
    place(weights);
    await pullModel(manifest(), home, { hub: { ...environment, offline: true } });
  });

  test('is put aside when it is wrong', async () => {
    place(noise(1000, 3));
    await pullModel(manifest(), home, { hub: environment });
    expect(readFileSync(blob(weights)).equals(weights)).toBe(true);
    expect(existsSync(`${blob(weights)}.rejected`)).toBe(true);
  });
});

describe('a repository without a manifest', () => {
  test('its model files are fetched at the commit, small ones checked by their git id', async () => {
    const pulled = await pullRepository({ repo: REPO, revision: null, file: null }, home, {
      hub: environment,
    });
    expect(pulled.revision).toBe(COMMIT);
    expect(pulled.files.map(({ path, role, sha256: sum }) => [path, role, sum])).toEqual([
      ['model.safetensors', 'weights', sha256(weights)],
      ['config.json', 'config', sha256(files['config.json'])],
      ['tokenizer.json', 'tokenizer', sha256(files['tokenizer.json'])],
    ]);
    for (const { file, sha256: sum } of pulled.files) expect(sha256(readFileSync(file))).toBe(sum);
  });

  test('a small file that does not match its git id is refused', async () => {
    hub.faults.replaced = { 'config.json': Buffer.from('{"model_type":"LLAMA"}') };
    const pull = pullRepository({ repo: REPO, revision: null, file: null }, home, { hub: environment });
    await expect(pull).rejects.toThrow(IntegrityError);
    await expect(pull).rejects.toThrow(new RegExp(`expected ${gitSha1(files['config.json'])}`));
  });

  test('of several GGUF files one must be named', async () => {
    await hub.close();
    hub = await startHub(REPO, { 'a.gguf': noise(2000, 1), 'b.gguf': noise(2000, 2) });
    const options = { hub: { ...environment, endpoint: hub.endpoint } };
    const both = pullRepository({ repo: REPO, revision: null, file: null }, home, options);
    await expect(both).rejects.toThrow(InvalidInputError);
    await expect(both).rejects.toThrow(/name one of: a\.gguf, b\.gguf/);
    const named = await pullRepository({ repo: REPO, revision: null, file: 'b.gguf' }, home, options);
    expect(named.files).toHaveLength(1);
  });

  test.each([
    ['owner/name', { repo: 'owner/name', file: null, revision: null }],
    ['owner/name@v1.0', { repo: 'owner/name', file: null, revision: 'v1.0' }],
    ['owner/na.me/q/file.Q8_0.gguf', { repo: 'owner/na.me', file: 'q/file.Q8_0.gguf', revision: null }],
    ['owner/name/f.gguf@main', { repo: 'owner/name', file: 'f.gguf', revision: 'main' }],
    ['name', null],
    ['../name', null],
    ['owner/../x.gguf', null],
    ['https://host/owner/name', null],
    ['owner/name/config.json', null],
  ])('reference %s', (text, expected) => {
    expect(parseHubReference(text)).toEqual(expected);
  });
});
