import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileFormatError, SearchloopError, UnsupportedError } from '../../../src/errors.js';
import { openGguf, openSafetensorsFile, openWeights } from '../../../src/weights/index.js';

const fixtures = join(__dirname, '..', '..', 'fixtures', 'gguf');
const json = <T>(name: string): T => JSON.parse(readFileSync(join(fixtures, name), 'utf8')) as T;

/** Largest difference, relative to the largest value. */
function relativeError(actual: Float32Array, expected: Float32Array): number {
  let worst = 0;
  let scale = 0;
  expected.forEach((value, i) => {
    worst = Math.max(worst, Math.abs(value - (actual[i] as number)));
    scale = Math.max(scale, Math.abs(value));
  });
  return worst / scale;
}

describe('every tensor type and value type', () => {
  const source = openGguf(join(fixtures, 'all-types.gguf'));
  const expected = openSafetensorsFile(join(fixtures, 'all-types.expected.safetensors'));
  const reference = json<{
    metadata: Record<string, unknown>;
    tensors: { name: string; type: string; shape: number[]; offsetInFile: number }[];
  }>('all-types.json');
  afterAll(() => {
    source.close();
    expected.close();
  });

  test('metadata', () => {
    for (const [key, value] of Object.entries(reference.metadata)) {
      const found = source.metadata.get(key);
      expect([key, typeof found === 'bigint' ? String(found) : found]).toEqual([key, value]);
    }
  });

  test.each(reference.tensors.map((tensor) => [tensor.type, tensor] as const))('%s', (type, tensor) => {
    const found = source.tensors.get(tensor.name);
    expect(found).toMatchObject({ type, shape: [3, 512], byteOffset: tensor.offsetInFile });
    const key = [...expected.tensors.keys()].find((name) => name === tensor.name || name === type) as string;
    const values = source.readFloat32(tensor.name);
    expect(values).toHaveLength(3 * 512);
    expect(relativeError(values, expected.readFloat32(key))).toBeLessThanOrEqual(1e-6);
    expect(source.readRaw(tensor.name)).toHaveLength(found?.byteLength as number);
  });
});

test('a whole model in float32 has the tensors of its safetensors form', () => {
  const source = openWeights(join(fixtures, 'tiny-llama-f32.gguf'));
  const original = openWeights(join(fixtures, '..', 'models', 'tiny-llama'));
  expect(source.metadata.get('general.architecture')).toBe('llama');
  expect(source.tensors.size).toBe(original.tensors.size);
  expect(source.tensors.get('token_embd.weight')?.shape).toEqual([512, 64]);
  expect(source.readFloat32('token_embd.weight')).toEqual(original.readFloat32('model.embed_tokens.weight'));
  expect(source.readFloat32('blk.1.ffn_down.weight')).toEqual(
    original.readFloat32('model.layers.1.mlp.down_proj.weight'),
  );
  source.close();
  original.close();
});

test.each(['q8_0', 'q4_1'])('a whole model in %s is near the float32 one', (type) => {
  const source = openWeights(join(fixtures, `tiny-llama-${type}.gguf`));
  const exact = openWeights(join(fixtures, 'tiny-llama-f32.gguf'));
  for (const name of exact.tensors.keys())
    expect(relativeError(source.readFloat32(name), exact.readFloat32(name))).toBeLessThan(
      type === 'q8_0' ? 0.005 : 0.08,
    );
  source.close();
  exact.close();
});

describe('corrupt files', () => {
  const { cases } = json<{ cases: { file: string; why: string }[] }>('bad/index.json');
  test.each(cases.map(({ file, why }) => [file, why]))('refuses %s: %s', (name) => {
    let error: unknown;
    const started = performance.now();
    try {
      openGguf(join(fixtures, 'bad', name)).close();
    } catch (caught) {
      error = caught;
    }
    expect(performance.now() - started).toBeLessThan(5000);
    expect(error).toBeInstanceOf(SearchloopError);
    const unsupported = name === 'version-1.gguf' || name === 'big-endian-version.gguf';
    expect(error).toBeInstanceOf(unsupported ? UnsupportedError : FileFormatError);
    expect((error as Error).message).toContain(name);
    expect((error as Error).message).toMatch(/offset \d+/);
  });
});
