import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { FileFormatError, NotFoundError, SearchloopError, UnsupportedError } from '../../../src/errors.js';
import { openSafetensorsFile, openWeights } from '../../../src/weights/index.js';

const fixtures = join(__dirname, '..', '..', 'fixtures');
const bad = join(fixtures, 'safetensors-bad');
const { cases } = JSON.parse(readFileSync(join(bad, 'index.json'), 'utf8')) as {
  cases: { file: string; valid: boolean; why: string; library: { tensors?: Record<string, number[]> } }[];
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'safetensors-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A file of this header text (or bytes) followed by data. */
function file(name: string, header: string | Buffer, data: Uint8Array = new Uint8Array(0)): string {
  const path = join(folder, name);
  const text = Buffer.from(header as string);
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(path, Buffer.concat([prefix, text, data]));
  return path;
}

const refusal = (path: string): Error => {
  try {
    openSafetensorsFile(path).close();
  } catch (error) {
    return error as Error;
  }
  throw new Error(`${path} was accepted`);
};

describe('reference files', () => {
  test.each(cases.filter(({ valid }) => valid).map((item) => [item.file, item] as const))(
    'reads %s',
    (name, { library }) => {
      const source = openSafetensorsFile(join(bad, name));
      expect(Object.fromEntries([...source.tensors].map(([key, { shape }]) => [key, shape]))).toEqual(
        Object.fromEntries(Object.entries(library.tensors ?? {})),
      );
      for (const [key, { shape }] of source.tensors)
        expect(source.readFloat32(key).length).toBe(shape.reduce((product, size) => product * size, 1));
      source.close();
    },
  );

  test('the values of the valid file are right', () => {
    const source = openSafetensorsFile(join(bad, 'good.safetensors'));
    expect([...source.readFloat32('a'), ...source.readFloat32('b')]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    source.close();
  });

  test('a tensor named __proto__ is a tensor', () => {
    const source = openSafetensorsFile(join(bad, 'good-proto-key.safetensors'));
    expect(source.readFloat32('__proto__')).toHaveLength(8);
    expect(Object.prototype).not.toHaveProperty('dtype');
    source.close();
  });

  test.each(cases.filter(({ valid }) => !valid).map(({ file: name, why }) => [name, why]))(
    'refuses %s: %s',
    (name) => {
      const error = refusal(join(bad, name));
      expect(error).toBeInstanceOf(FileFormatError);
      expect(error.message).toContain(name);
    },
  );
});

describe('refusals name tensor and offset', () => {
  test.each([
    ['hole.safetensors', /tensor "b".*offset 16.*hole/],
    ['overlapping-offsets.safetensors', /tensor "b".*overlap/],
    ['offsets-past-end.safetensors', /tensor "b".*offset \d+/],
    ['duplicate-key.safetensors', /"a" stands twice.*offset \d+/],
    ['header-length-over-limit.safetensors', /offset 0.*100000000/],
    ['unknown-dtype.safetensors', /tensor "\w".*Q4_1/],
    ['invalid-utf8.safetensors', /offset 8 is not UTF-8/],
    ['trailing-bytes.safetensors', /3 bytes at offset/],
  ])('%s', (name, message) => {
    expect(refusal(join(bad, name)).message).toMatch(message);
  });
});

describe('traps', () => {
  test.each([2n ** 27n, 2n ** 40n, 2n ** 63n])(
    'a length prefix of %s is refused before any allocation',
    (length) => {
      const path = join(folder, 'prefix.safetensors');
      const bytes = Buffer.alloc(64);
      bytes.writeBigUInt64LE(length);
      writeFileSync(path, bytes);
      const before = process.memoryUsage().arrayBuffers;
      expect(refusal(path).message).toContain(String(length));
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1 << 20);
    },
  );

  test('padding with spaces is read, padding with NUL is refused', () => {
    const header = '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}';
    const data = new Uint8Array(new Float32Array([2.5]).buffer);
    const source = openSafetensorsFile(file('spaces.safetensors', `${header}   `, data));
    expect([...source.readFloat32('a')]).toEqual([2.5]);
    source.close();
    expect(refusal(file('nul.safetensors', `${header}\0\0`, data)).message).toMatch(
      /end of the JSON text.*offset 62/,
    );
  });

  test.each([
    ['shape of 1e308', '{"a":{"dtype":"F32","shape":[1e308],"data_offsets":[0,4]}}'],
    ['offset of 1e308', '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,1e308]}}'],
    ['negative offset', '{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}'],
    ['three offsets', '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}}'],
    ['a dtype that is a prototype name', '{"a":{"dtype":"constructor","shape":[1],"data_offsets":[0,4]}}'],
    ['duplicate key in an entry', '{"a":{"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[0,4]}}'],
    ['deep nesting', `{"a":${'['.repeat(50_000)}`],
    ['I4', '{"a":{"dtype":"I4","shape":[8],"data_offsets":[0,4]}}'],
    ['byte order mark', '\ufeff{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'],
    ['tensor is null', '{"a":null}'],
  ])('refuses %s', (_name, header) => {
    expect(refusal(file('bad.safetensors', header, new Uint8Array(4)))).toBeInstanceOf(FileFormatError);
  });

  test.each([
    ['F8_E4M3', 4],
    ['F64', 8],
  ])('refuses %s by name', (dtype, bytes) => {
    const header = `{"w":{"dtype":"${dtype}","shape":[${dtype === 'F64' ? 1 : 4}],"data_offsets":[0,${bytes}]}}`;
    const error = refusal(file('float.safetensors', header, new Uint8Array(bytes)));
    expect(error).toBeInstanceOf(UnsupportedError);
    expect(error.message).toMatch(new RegExp(`tensor "w" has type ${dtype}`));
  });

  test('an integer tensor does not stop the others from being read', () => {
    const header =
      '{"ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}';
    const data = new Uint8Array(12);
    new DataView(data.buffer).setFloat32(8, 1.5, true);
    const source = openSafetensorsFile(file('ids.safetensors', header, data));
    expect([...source.tensors.keys()]).toEqual(['w']);
    expect([...source.readFloat32('w')]).toEqual([1.5]);
    expect(() => source.readFloat32('ids')).toThrow(UnsupportedError);
    expect(() => source.readFloat32('none')).toThrow(NotFoundError);
    source.close();
  });

  test('BF16 at an unaligned offset, odd count, every special pattern', () => {
    const patterns = [0x3f80, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0x0001, 0x7f7f];
    const data = new Uint8Array(patterns.length * 2 + 2);
    const view = new DataView(data.buffer);
    for (const [i, bits] of patterns.entries()) view.setUint16(2 + i * 2, bits, true);
    const header = `{"pad":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},"b":{"dtype":"BF16","shape":[${patterns.length}],"data_offsets":[2,${data.length}]}}`;
    const source = openSafetensorsFile(file('bf16.safetensors', header, data));
    const bits = new Uint32Array(source.readFloat32('b').buffer);
    expect([...bits]).toEqual(patterns.map((pattern) => (pattern << 16) >>> 0));
    source.close();
  });
});

test('damaged files end in an error of ours, never in another, and are never read past their end', () => {
  const good = readFileSync(join(bad, 'good-metadata-unsorted.safetensors'));
  const path = join(folder, 'fuzz.safetensors');
  const change = fc.tuple(fc.integer({ min: 0, max: good.length - 1 }), fc.integer({ min: 0, max: 255 }));
  fc.assert(
    fc.property(fc.array(change, { maxLength: 3 }), fc.integer({ min: 0, max: 400 }), (changes, cut) => {
      const bytes = Buffer.from(cut < good.length ? good.subarray(0, good.length - cut) : good);
      for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
      writeFileSync(path, bytes);
      try {
        const source = openSafetensorsFile(path);
        for (const { name, byteOffset, byteLength } of source.tensors.values()) {
          expect(byteOffset + byteLength).toBeLessThanOrEqual(bytes.length);
          source.readFloat32(name);
        }
        source.close();
      } catch (error) {
        expect(error).toBeInstanceOf(SearchloopError);
      }
    }),
    { numRuns: 500 },
  );
});

describe('whole models', () => {
  const names = ['tiny-llama', 'tiny-llama-sharded', 'tiny-llama-bf16'] as const;
  const [whole, sharded, half] = names.map((name) => openWeights(join(fixtures, 'models', name))) as [
    ReturnType<typeof openWeights>,
    ReturnType<typeof openWeights>,
    ReturnType<typeof openWeights>,
  ];
  afterAll(() => [whole, sharded, half].forEach((source) => void source.close()));

  test('shards hold what the single file holds', () => {
    expect([...sharded.tensors.keys()].sort()).toEqual([...whole.tensors.keys()].sort());
    for (const name of whole.tensors.keys())
      expect(sharded.readFloat32(name)).toEqual(whole.readFloat32(name));
  });

  test('bfloat16 weights are the float32 ones, rounded', () => {
    for (const name of whole.tensors.keys()) {
      const exact = whole.readFloat32(name);
      half.readFloat32(name).forEach((value, i) => {
        if (Math.abs(value - (exact[i] as number)) > Math.abs(exact[i] as number) / 256)
          throw new Error(`${name} ${i}`);
      });
    }
  });
});
