import {
  closeSync,
  ftruncateSync,
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
import { FileFormatError, InvalidInputError, SearchloopError } from '../../../src/errors.js';
import { type GgufEntry, openGguf, quantise8, writeGguf } from '../../../src/weights/index.js';

const fixtures = join(__dirname, '..', '..', 'fixtures', 'gguf');
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gguf-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('metadata of every value type is written as it was read', async () => {
  const original = openGguf(join(fixtures, 'all-types.gguf'));
  const path = join(folder, 'metadata.gguf');
  await writeGguf(path, original.entries, []);
  const copy = openGguf(path);
  const kept = [...original.entries].filter(([key]) => key !== 'general.alignment');
  expect([...copy.entries]).toEqual(kept);
  original.close();
  copy.close();
});

test('plain tensors come back as they were', async () => {
  const path = join(folder, 'plain.gguf');
  const data = (): Float32Array => Float32Array.of(1, -2, 0.5, 3, 4, 5);
  await writeGguf(path, new Map(), [
    { name: 'a', type: 'F32', shape: [2, 3], data },
    { name: 'b', type: 'F16', shape: [3, 2], data },
    { name: 'c', type: 'BF16', shape: [6], data },
  ]);
  const source = openGguf(path);
  expect([...source.tensors.values()].map(({ name, shape }) => [name, shape])).toEqual([
    ['a', [2, 3]],
    ['b', [3, 2]],
    ['c', [6]],
  ]);
  for (const name of ['a', 'b', 'c']) expect(source.readFloat32(name)).toEqual(data());
  source.close();
});

test('quantised values are written bit for bit as they are, and read as they are meant', async () => {
  const values = Float32Array.from({ length: 4 * 96 }, (_, i) => Math.sin(i * i) * (1 + (i % 7)));
  const matrix = quantise8(values, 4, 96);
  const path = join(folder, 'q8.gguf');
  await writeGguf(path, new Map(), [
    { name: 'q', type: 'Q8_0', shape: [4, 96], quantised: () => matrix },
    { name: 'f', type: 'Q8_0', shape: [4, 96], data: () => values },
  ]);
  const source = openGguf(path);
  expect(source.readRaw('q')).toEqual(source.readRaw('f'));
  const read = source.readFloat32('q');
  for (let i = 0; i < read.length; i += 1) {
    const scale = matrix.scales[Math.floor(i / 32)] as number;
    expect(read[i]).toBe(Math.fround(scale * ((matrix.values[i] as number) - 128)));
  }
  source.close();
});

test('the bytes of a Q8_0 tensor made elsewhere are kept', async () => {
  const theirs = openGguf(join(fixtures, 'tiny-llama-q8_0.gguf'));
  const path = join(folder, 'again.gguf');
  const names = [...theirs.tensors.values()].filter(({ type }) => type === 'Q8_0');
  await writeGguf(
    path,
    theirs.entries,
    names.map(({ name, shape }) => ({
      name,
      type: 'Q8_0' as const,
      shape,
      data: () => theirs.readFloat32(name),
    })),
  );
  const ours = openGguf(path);
  expect(names.length).toBeGreaterThan(10);
  for (const { name } of names) expect(ours.readRaw(name)).toEqual(theirs.readRaw(name));
  ours.close();
  theirs.close();
});

test('the writer refuses what cannot be stored', async () => {
  const path = join(folder, 'refused.gguf');
  const data = (): Float32Array => new Float32Array(40);
  const entry = (type: GgufEntry['type'], value: GgufEntry['value']): ReadonlyMap<string, GgufEntry> =>
    new Map([['k', { type, items: null, value }]]);
  await expect(writeGguf(path, new Map(), [{ name: 'a', type: 'Q8_0', shape: [40], data }])).rejects.toThrow(
    /blocks of 32/,
  );
  await expect(writeGguf(path, entry('uint8', 256), [])).rejects.toThrow(InvalidInputError);
  await expect(writeGguf(path, entry('int32', 1.5), [])).rejects.toThrow(/expected int32, found 1.5/);
  await expect(writeGguf(path, entry('string', 5), [])).rejects.toThrow(/expected string/);
  expect(() => readFileSync(path)).toThrow(/ENOENT/);
});

describe('limits', () => {
  const u32 = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return bytes;
  };
  const u64 = (value: bigint): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(value);
    return bytes;
  };
  const text = (value: string): Buffer => Buffer.concat([u64(BigInt(value.length)), Buffer.from(value)]);
  const head = (tensors: bigint, entries: bigint, version = 3): Buffer =>
    Buffer.concat([Buffer.from('GGUF'), u32(version), u64(tensors), u64(entries)]);

  const refusal = (...parts: Buffer[]): Error => {
    const path = join(folder, 'limit.gguf');
    const bytes = Buffer.concat(parts);
    writeFileSync(path, Buffer.concat([bytes, Buffer.alloc(Math.max(0, 160 - bytes.length))]));
    const before = process.memoryUsage().arrayBuffers;
    try {
      openGguf(path).close();
    } catch (error) {
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1 << 22);
      expect(error).toBeInstanceOf(FileFormatError);
      return error as Error;
    }
    throw new Error('accepted');
  };

  test.each([0, 3, 2 ** 30, 24, 4])('alignment %i', (alignment) => {
    const error = refusal(head(0n, 1n), text('general.alignment'), u32(4), u32(alignment));
    expect(error.message).toMatch(new RegExp(`alignment is ${alignment}`));
  });

  test('a million dimensions', () => {
    expect(refusal(head(1n, 0n), text('w'), u32(1_000_000)).message).toMatch(/1000000 dimensions/);
  });

  test('2^60 metadata entries', () => {
    expect(refusal(head(0n, 2n ** 60n)).message).toMatch(/metadata entries/);
  });

  test('a text of 2^40 bytes', () => {
    expect(refusal(head(0n, 1n), text('k'), u32(8), u64(2n ** 40n)).message).toMatch(
      /claims 1099511627776 bytes/,
    );
  });

  test('an array of 2^28 numbers in 160 bytes', () => {
    expect(refusal(head(0n, 1n), text('k'), u32(9), u32(4), u64(2n ** 28n)).message).toMatch(
      /claims 268435456/,
    );
  });

  test('arrays in arrays without end', () => {
    const nested = Buffer.concat(Array.from({ length: 6 }, () => Buffer.concat([u32(9), u64(1n)])));
    expect(refusal(head(0n, 1n), text('k'), u32(9), nested).message).toMatch(/nested deeper/);
  });

  test('a key twice, a tensor twice, tensors on one another', () => {
    const entry = Buffer.concat([text('k'), u32(0), Buffer.of(1)]);
    expect(refusal(head(0n, 2n), entry, entry).message).toMatch(/"k" stands twice/);
    const tensor = (name: string, offset: bigint): Buffer =>
      Buffer.concat([text(name), u32(1), u64(8n), u32(0), u64(offset)]);
    expect(refusal(head(2n, 0n), tensor('a', 0n), tensor('a', 32n), Buffer.alloc(128)).message).toMatch(
      /"a" stands twice/,
    );
    expect(refusal(head(2n, 0n), tensor('a', 0n), tensor('b', 0n), Buffer.alloc(128)).message).toMatch(
      /"a" and "b" overlap/,
    );
  });

  test('a key that is not UTF-8', () => {
    expect(refusal(head(0n, 1n), u64(1n), Buffer.of(0xff), u32(0), Buffer.of(1)).message).toMatch(
      /not UTF-8/,
    );
  });
});

test('a type that exists but is not read is named', () => {
  const bytes = readFileSync(join(fixtures, 'all-types.gguf'));
  const name = Buffer.from('tensor.q6_k');
  const at = bytes.indexOf(name) + name.length + 4 + 16;
  bytes.writeUInt32LE(20, at);
  const path = join(folder, 'iq.gguf');
  writeFileSync(path, bytes);
  expect(() => openGguf(path)).toThrow(/tensor "tensor.q6_k" has type IQ4_NL; supported are F32 .* Q6_K/);
});

test('damaged files end in an error of ours, never in another', () => {
  const good = readFileSync(join(fixtures, 'bad', '..', 'all-types.gguf'));
  const path = join(folder, 'fuzz.gguf');
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 1400 }), fc.integer({ min: 0, max: 255 })), {
        minLength: 1,
        maxLength: 4,
      }),
      fc.integer({ min: 0, max: 1500 }),
      (changes, cut) => {
        const bytes = Buffer.from(cut < 400 ? good.subarray(0, good.length - cut) : good);
        for (const [at, value] of changes) bytes[at] = value;
        writeFileSync(path, bytes);
        try {
          const source = openGguf(path);
          for (const name of source.tensors.keys()) source.readFloat32(name);
          source.close();
        } catch (error) {
          expect(error).toBeInstanceOf(SearchloopError);
        }
      },
    ),
    { numRuns: 400 },
  );
});

test('a file above 2 GiB is read by ranges', async () => {
  const path = join(folder, 'huge.gguf');
  await writeGguf(path, new Map(), [
    { name: 'w', type: 'F32', shape: [8], data: () => Float32Array.from([1, 2, 3, 4, 5, 6, 7, 8]) },
  ]);
  const bytes = readFileSync(path);
  const source = openGguf(path);
  const data = source.tensors.get('w')?.byteOffset as number;
  source.close();
  // Moves the tensor behind a hole of 2.1 GB: its offset stands last in the header.
  const far = 2_100_000_000 - (2_100_000_000 % 32);
  const offsetAt = bytes.indexOf(Buffer.from('w')) + 1 + 4 + 8 + 4;
  bytes.writeBigUInt64LE(BigInt(far), offsetAt);
  const file = openSync(path, 'w');
  writeSync(file, bytes, 0, data, 0);
  ftruncateSync(file, data + far);
  writeSync(file, bytes, data, 32, data + far);
  closeSync(file);
  const moved = openGguf(path);
  expect([...moved.readFloat32('w')]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  moved.close();
  rmSync(path);
});
