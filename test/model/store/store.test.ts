import {
  appendFileSync,
  copyFileSync,
  cpSync,
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
import {
  CancelledError,
  FileFormatError,
  InvalidInputError,
  NotFoundError,
  UnsupportedError,
} from '../../../src/errors.js';
import {
  importModel,
  listModels,
  openModel,
  preparePrecision,
  removeModel,
  verifyModel,
} from '../../../src/model/store/index.js';
import { createTokenizer } from '../../../src/tokenizer/index.js';
import { COMMIT, startHub } from '../../support/hub-server.js';

const fixtures = join(__dirname, '..', '..', 'fixtures');
const models = join(fixtures, 'models');

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'store-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const path = (name: string): string => join(home, name);

describe('import', () => {
  test.each([
    'tiny-llama',
    'tiny-llama-sharded',
    'tiny-llama-bf16',
    'tiny-llama-rope3',
    'tiny-qwen2',
    'tiny-qwen3',
  ])('a folder: %s', async (name) => {
    const model = await importModel(join(models, name), home);
    expect(model.record).toMatchObject({ id: name, kind: 'decoder', format: 'safetensors', embedder: null });
    const opened = await openModel(home, name);
    expect(opened.record).toEqual(model.record);
    const weights = opened.openWeights();
    expect(weights.readFloat32('model.norm.weight')).toHaveLength(64);
    weights.close();
    expect(createTokenizer(await opened.readTokenizer()).hasChatTemplate).toBe(true);
    expect(await verifyModel(home, name)).toEqual([]);
    const signal = AbortSignal.abort(new CancelledError());
    await expect(verifyModel(home, name, { signal })).rejects.toThrow(CancelledError);
  });

  test.each(['f32', 'q8_0', 'q4_1'])('a GGUF file: %s', async (type) => {
    const id = `tiny-llama-${type}`;
    const model = await importModel(join(fixtures, 'gguf', `${id}.gguf`), home);
    expect(model.record).toMatchObject({ id, kind: 'decoder', architecture: 'llama', format: 'gguf' });
    expect(model.record.files.filter(({ derived }) => derived).map(({ role }) => role)).toContain(
      'tokenizer',
    );
    const tokenizer = createTokenizer(await (await openModel(home, id)).readTokenizer());
    expect(tokenizer.decode(tokenizer.encodePlain('Who was it in 1984?'))).toBe('Who was it in 1984?');
  });

  test('a single safetensors file takes what lies beside it', async () => {
    const model = await importModel(join(models, 'tiny-qwen2', 'model.safetensors'), home);
    expect(model.record).toMatchObject({ id: 'tiny-qwen2', architecture: 'qwen2' });
    cpSync(join(models, 'tiny-qwen2'), path('other'), { recursive: true });
    copyFileSync(path('other/model.safetensors'), path('other/My Weights.safetensors'));
    const named = await importModel(path('other/My Weights.safetensors'), home);
    expect(named.record.id).toBe('my-weights');
    expect(named.record.digest).toBe(model.record.digest);
  });

  test('an encoder says how to pool, or the caller does', async () => {
    const source = path('bert');
    cpSync(join(models, 'tiny-bert'), source, { recursive: true });
    await expect(importModel(source, home)).rejects.toThrow(/say how to pool/);
    const given = await importModel(source, home, { embedder: { pooling: 'cls', queryPrefix: 'query: ' } });
    expect(given.record.embedder).toEqual({
      pooling: 'cls',
      normalise: true,
      queryPrefix: 'query: ',
      passagePrefix: '',
      maxTokens: 128,
    });
    mkdirSync(join(source, '1_Pooling'));
    writeFileSync(
      join(source, '1_Pooling', 'config.json'),
      '{"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false}',
    );
    writeFileSync(join(source, 'modules.json'), '[{"type":"sentence_transformers.models.Transformer"}]');
    writeFileSync(join(source, 'sentence_bert_config.json'), '{"max_seq_length":48}');
    writeFileSync(
      join(source, 'config_sentence_transformers.json'),
      '{"prompts":{"query":"q: ","document":"d: "}}',
    );
    const said = await importModel(source, home, { id: 'said' });
    expect(said.record.embedder).toEqual({
      pooling: 'mean',
      normalise: false,
      queryPrefix: 'q: ',
      passagePrefix: 'd: ',
      maxTokens: 48,
    });
    expect(said.record.digest).not.toBe(given.record.digest);
    writeFileSync(join(source, '1_Pooling', 'config.json'), '{"pooling_mode_max_tokens":true}');
    await expect(importModel(source, home, { id: 'max' })).rejects.toThrow(UnsupportedError);
    const long = importModel(join(models, 'tiny-bert'), home, {
      id: 'long',
      embedder: { pooling: 'mean', maxTokens: 129 },
    });
    await expect(long).rejects.toThrow(/129 tokens an input, but the model has 128 positions/);
  });

  test('the same content under the same name is the same model, other content is refused', async () => {
    const first = await importModel(join(models, 'tiny-llama'), home, { id: 'it' });
    const again = await importModel(join(models, 'tiny-llama'), home, { id: 'it' });
    expect(again.record).toEqual(first.record);
    await expect(importModel(join(models, 'tiny-qwen2'), home, { id: 'it' })).rejects.toThrow(
      InvalidInputError,
    );
    expect((await openModel(home, 'it')).record.digest).toBe(first.record.digest);
    expect(readdirSync(path('models/.partial'))).toEqual([]);
  });

  test('what the user changes later does not change the model', async () => {
    cpSync(join(models, 'tiny-llama'), path('mine'), { recursive: true });
    await importModel(path('mine'), home);
    appendFileSync(path('mine/model.safetensors'), 'x');
    expect(await verifyModel(home, 'mine')).toEqual([]);
  });

  test('imports of one model at the same time give one model', async () => {
    const all = await Promise.all(
      Array.from({ length: 4 }, () => importModel(join(models, 'tiny-llama'), home)),
    );
    expect(new Set(all.map(({ record }) => record.digest)).size).toBe(1);
    expect((await listModels(home)).map(({ id }) => id)).toEqual(['tiny-llama']);
  });
});

describe('import from the hub', () => {
  const repositoryFiles = (name: string): Record<string, Buffer> =>
    Object.fromEntries(
      readdirSync(join(models, name)).map((file) => [file, readFileSync(join(models, name, file))]),
    );

  test.each(['tiny-llama-sharded', 'tiny-qwen3'])('a repository with safetensors: %s', async (name) => {
    const hub = await startHub(`someone/${name}`, {
      ...repositoryFiles(name),
      'README.md': Buffer.from('hi'),
    });
    try {
      const options = { hub: { endpoint: hub.endpoint, token: null, offline: false } };
      const model = await importModel(`someone/${name}`, home, options);
      expect(model.record).toMatchObject({ id: name, origin: `hub someone/${name} at ${COMMIT}` });
      expect(await verifyModel(home, name)).toEqual([]);
      const local = await importModel(join(models, name), home, { id: 'local' });
      expect(local.record.digest).toBe(model.record.digest);
      const weights = (await openModel(home, name)).openWeights();
      expect(weights.readFloat32('model.embed_tokens.weight')).toHaveLength(512 * 64);
      weights.close();
    } finally {
      await hub.close();
    }
  });

  test('one GGUF file of several', async () => {
    const bytes = (type: string): Buffer => readFileSync(join(fixtures, 'gguf', `tiny-llama-${type}.gguf`));
    const hub = await startHub('someone/quants', {
      'T.Q8_0.gguf': bytes('q8_0'),
      'T.Q4_1.gguf': bytes('q4_1'),
    });
    try {
      const options = { hub: { endpoint: hub.endpoint, token: null, offline: false } };
      await expect(importModel('someone/quants', home, options)).rejects.toThrow(
        /name one of: T\.Q8_0\.gguf, T\.Q4_1/,
      );
      const model = await importModel('someone/quants/T.Q4_1.gguf', home, options);
      expect(model.record).toMatchObject({ id: 't.q4_1', format: 'gguf' });
    } finally {
      await hub.close();
    }
  });
});

describe('refusals leave nothing behind', () => {
  const nothing = async (): Promise<void> => {
    expect(await listModels(home)).toEqual([]);
    if (existsSync(path('models/.partial'))) expect(readdirSync(path('models/.partial'))).toEqual([]);
  };
  const changed = (name: string, change: (config: Record<string, unknown>) => void): string => {
    const folder = path('changed');
    cpSync(join(models, name), folder, { recursive: true });
    const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Record<string, unknown>;
    change(config);
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    return folder;
  };
  afterEach(nothing);

  test('an architecture that is not supported, by name and with the list', async () => {
    const folder = changed('tiny-llama', (config) => {
      config.model_type = 'mamba2';
    });
    await expect(importModel(folder, home)).rejects.toThrow(UnsupportedError);
    await expect(importModel(folder, home)).rejects.toThrow(
      /"mamba2" is not supported.*llama, qwen2, qwen3.*bert/,
    );
  });

  test('a config that does not fit the weights', async () => {
    const folder = changed('tiny-llama', (config) => {
      config.num_hidden_layers = 3;
    });
    await expect(importModel(folder, home)).rejects.toThrow(/model\.layers\.2\..* is missing/);
  });

  test('a missing tokenizer, a missing config, a missing shard, damaged weights', async () => {
    const folder = changed('tiny-llama-sharded', () => {});
    rmSync(join(folder, 'model-00002-of-00002.safetensors'));
    await expect(importModel(folder, home)).rejects.toThrow(FileFormatError);
    rmSync(join(folder, 'tokenizer.json'));
    await expect(importModel(folder, home)).rejects.toThrow(/tokenizer\.json/);
    rmSync(join(folder, 'config.json'));
    await expect(importModel(folder, home)).rejects.toThrow(/config\.json/);
    await expect(importModel(join(fixtures, 'gguf', 'bad', 'truncated-data.gguf'), home)).rejects.toThrow(
      /truncated-data\.gguf.*offset/,
    );
  });

  test('what is no model at all', async () => {
    mkdirSync(path('empty'));
    writeFileSync(path('text.txt'), 'no weights here');
    await expect(importModel(path('empty'), home)).rejects.toThrow(/no model\.safetensors/);
    await expect(importModel(path('text.txt'), home)).rejects.toThrow(/neither a GGUF nor/);
    await expect(importModel('nowhere', home)).rejects.toThrow(/no folder or file here, no manifest/);
    await expect(importModel(join(models, 'tiny-llama'), home, { id: '../up' })).rejects.toThrow(
      /model name/,
    );
  });
});

describe('the imported models', () => {
  beforeEach(async () => {
    await importModel(join(models, 'tiny-llama'), home);
    await importModel(join(models, 'tiny-qwen3'), home, { id: 'second' });
  });

  test('are listed, removed, and unknown names are answered with the known ones', async () => {
    expect((await listModels(home)).map(({ id }) => id)).toEqual(['second', 'tiny-llama']);
    await expect(openModel(home, 'third')).rejects.toThrow(
      /no model "third"; imported are: second, tiny-llama/,
    );
    await removeModel(home, 'second');
    expect((await listModels(home)).map(({ id }) => id)).toEqual(['tiny-llama']);
    await expect(openModel(home, 'second')).rejects.toThrow(NotFoundError);
    await expect(removeModel(home, 'second')).rejects.toThrow(NotFoundError);
    for (const bad of ['..', '../models', '.partial', 'A', ''])
      await expect(removeModel(home, bad)).rejects.toThrow(NotFoundError);
  });

  test('damage is found: bytes by verify, sizes at opening', async () => {
    const weights = path('models/second/model.safetensors');
    const bytes = readFileSync(weights);
    bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
    writeFileSync(weights, bytes);
    const faults = await verifyModel(home, 'second');
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/model\.safetensors: sha256 [0-9a-f]{64}, expected [0-9a-f]{64}/);
    appendFileSync(weights, 'x');
    await expect(openModel(home, 'second')).rejects.toThrow(
      /damaged: model\.safetensors has \d+ bytes, expected \d+/,
    );
    rmSync(weights);
    await expect(openModel(home, 'second')).rejects.toThrow(/model\.safetensors is missing/);
  });

  test('damage is repaired by importing the same model again, what the user named otherwise is not touched', async () => {
    writeFileSync(path('models/second/model.safetensors'), 'damaged');
    await expect(importModel(join(models, 'tiny-llama'), home, { id: 'second' })).rejects.toThrow(
      InvalidInputError,
    );
    await importModel(join(models, 'tiny-qwen3'), home, { id: 'second' });
    expect(await verifyModel(home, 'second')).toEqual([]);
    writeFileSync(path('models/second/model.json'), '{');
    await importModel(join(models, 'tiny-llama'), home, { id: 'second' });
    expect((await openModel(home, 'second')).record.architecture).toBe('llama');
    writeFileSync(path('models/second/model.json'), '{');
    await removeModel(home, 'second');
    expect(existsSync(path('models/second'))).toBe(false);
  });

  test('a record that is not valid is refused with file and field', async () => {
    const record = path('models/second/model.json');
    const value = JSON.parse(readFileSync(record, 'utf8')) as Record<string, unknown>;
    writeFileSync(record, JSON.stringify({ ...value, colour: 'red' }));
    await expect(openModel(home, 'second')).rejects.toThrow(/model\.json.*[\s\S]*colour/);
    writeFileSync(record, '{');
    await expect(openModel(home, 'second')).rejects.toThrow(FileFormatError);
    expect((await listModels(home)).map(({ id }) => id)).toEqual(['tiny-llama']);
  });

  test('a file of a model that is no JSON is named', async () => {
    const model = await openModel(home, 'tiny-llama');
    const file = model.file('tokenizer') as string;
    const whole = readFileSync(file);
    writeFileSync(file, whole.subarray(0, -3));
    await expect(model.readTokenizer()).rejects.toThrow(FileFormatError);
    await expect(model.readTokenizer()).rejects.toThrow(`${file}: expected JSON`);
    writeFileSync(file, whole);
  });

  test('are converted at first use and found again later', async () => {
    const model = await openModel(home, 'tiny-llama');
    const stages: string[] = [];
    const first = await preparePrecision(home, model, 'fp32', {
      onProgress: ({ stage }) => stages.push(stage),
    });
    expect(stages.length).toBeGreaterThan(0);
    stages.length = 0;
    const again = await preparePrecision(home, model, 'fp32', {
      onProgress: ({ stage }) => stages.push(stage),
    });
    expect(again).toEqual(first);
    expect(stages).toEqual([]);
    expect(existsSync(first.stepFile)).toBe(true);
    const both = await Promise.all([
      preparePrecision(home, await openModel(home, 'second'), 'fp32'),
      preparePrecision(home, await openModel(home, 'second'), 'fp32'),
    ]);
    expect(both[0]).toEqual(both[1]);
  });
});
