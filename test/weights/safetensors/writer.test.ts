import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { FileFormatError, InvalidInputError } from '../../../src/errors.js';
import {
  openSafetensorsFile,
  openWeights,
  type WrittenTensor,
  writeSafetensors,
} from '../../../src/weights/index.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'safetensors-writer-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const tensor = fc.record({
  type: fc.constantFrom('F32' as const, 'F16' as const, 'BF16' as const),
  shape: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }),
  seed: fc.integer({ min: -8, max: 8 }),
});

test('what is written is read back, whatever the names', async () => {
  const path = join(folder, 'round.safetensors');
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.string({ unit: 'grapheme' }), tensor, { maxKeys: 6 }),
      fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }),
      async (tensors, metadata) => {
        const written: WrittenTensor[] = Object.entries(tensors)
          .filter(([name]) => name !== '__metadata__')
          .map(([name, { type, shape, seed }]) => {
            const length = shape.reduce((product, size) => product * size, 1);
            // Small integers, exact in all three types.
            return { name, type, shape, data: () => Float32Array.from({ length }, (_, i) => seed + i) };
          });
        await writeSafetensors(path, written, metadata);
        const source = openSafetensorsFile(path);
        expect(Object.fromEntries(source.metadata)).toEqual({ ...metadata });
        expect(source.tensors.size).toBe(written.length);
        for (const { name, type, shape, data } of written) {
          const info = source.tensors.get(name);
          expect(info).toMatchObject({ type, shape });
          expect((info?.byteOffset as number) % (type === 'F32' ? 4 : 2)).toBe(0);
          expect(source.readFloat32(name)).toEqual(data());
        }
        source.close();
      },
    ),
    { numRuns: 60 },
  );
});

test('the header is padded with spaces to eight bytes', async () => {
  const path = join(folder, 'padded.safetensors');
  await writeSafetensors(path, [{ name: 'odd', type: 'F32', shape: [1], data: () => Float32Array.of(1) }]);
  const bytes = readFileSync(path);
  const length = Number(bytes.readBigUInt64LE(0));
  expect(length % 8).toBe(0);
  expect(bytes.subarray(8, 8 + length).toString()).toMatch(/^\{.*\} *$/);
});

test("the writer keeps the format's limit and its own contract", async () => {
  const data = (): Float32Array => new Float32Array(1);
  const path = join(folder, 'refused.safetensors');
  const one = { name: 'a', type: 'F32', shape: [1], data } as const;
  await expect(writeSafetensors(path, [one, one])).rejects.toThrow(InvalidInputError);
  await expect(writeSafetensors(path, [{ ...one, shape: [2] }])).rejects.toThrow(/needs 2 values, found 1/);
  await expect(writeSafetensors(path, [one], { long: 'x'.repeat(100_000_001) })).rejects.toThrow(/limit/);
  expect(() => readFileSync(path)).toThrow(/ENOENT/);
});

describe('shards', () => {
  const makeShards = (name: string, weightMap: unknown): string => {
    const place = join(folder, name);
    mkdirSync(place);
    writeFileSync(
      join(place, 'model.safetensors.index.json'),
      typeof weightMap === 'string' ? weightMap : JSON.stringify({ weight_map: weightMap }),
    );
    return place;
  };
  const good = join(__dirname, '..', '..', 'fixtures', 'safetensors-bad', 'good.safetensors');

  test.each([
    [
      'a missing shard',
      { a: 'model-00001-of-00002.safetensors' },
      /shard model-00001-of-00002.safetensors is missing/,
    ],
    ['a shard outside the folder', { a: '../good.safetensors' }, /"\.\.\/good\.safetensors"/],
    ['an absolute shard', { a: good }, /without a folder/],
    ['a shard that is no text', { a: 5 }, /names shard 5/],
    ['an empty map', {}, /non-empty "weight_map"/],
    ['no map', '{}', /weight_map/],
    ['no JSON', '{"weight_map"', /at offset 13/],
  ])('refuses %s', (name, weightMap, message) => {
    const place = makeShards(name, weightMap);
    expect(() => openWeights(place)).toThrow(FileFormatError);
    expect(() => openWeights(place)).toThrow(message);
  });

  test('refuses a tensor that its shard lacks', () => {
    const place = makeShards('lacking', { a: 's.safetensors', z: 's.safetensors' });
    writeFileSync(join(place, 's.safetensors'), readFileSync(good));
    expect(() => openWeights(place)).toThrow(/tensor "z" is not in shard s.safetensors/);
  });

  test('reads an index of 13 MB', () => {
    const place = makeShards('large', { a: 's.safetensors', b: 's.safetensors' });
    writeFileSync(join(place, 's.safetensors'), readFileSync(good));
    const text = JSON.stringify({
      metadata: { note: 'x'.repeat(13 * 1024 * 1024) },
      weight_map: { a: 's.safetensors', b: 's.safetensors' },
    });
    writeFileSync(join(place, 'model.safetensors.index.json'), text);
    const source = openWeights(place);
    expect([...source.readFloat32('b')]).toEqual([4, 5, 6, 7]);
    source.close();
  });
});

test('a file above 2 GiB is read by ranges', () => {
  const path = join(folder, 'huge.safetensors');
  const elements = 2 ** 31 / 4 + 1024;
  const header = Buffer.from(
    JSON.stringify({
      big: { dtype: 'F32', shape: [elements], data_offsets: [0, elements * 4] },
      last: { dtype: 'F32', shape: [2], data_offsets: [elements * 4, elements * 4 + 8] },
    }),
  );
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(header.length));
  const file = openSync(path, 'w');
  writeSync(file, Buffer.concat([prefix, header]));
  const end = 8 + header.length + elements * 4;
  ftruncateSync(file, end);
  writeSync(file, new Uint8Array(Float32Array.of(1.5, -2).buffer), 0, 8, end);
  closeSync(file);
  const source = openSafetensorsFile(path);
  expect([...source.readFloat32('last')]).toEqual([1.5, -2]);
  source.close();
  rmSync(path);
});
