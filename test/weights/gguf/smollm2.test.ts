// The default policy model against values that other programs computed from the same file.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  openSafetensorsFile,
  quantise8,
  type TensorInfo,
  type TensorSource,
} from '../../../src/weights/index.js';
import { toQ8Bytes } from '../../../src/weights/quantised/eight-bit.js';
import { realModel } from '../../support/real-model.js';

const fixtures = join(__dirname, '..', '..', 'fixtures', 'smollm2');
const info = JSON.parse(readFileSync(join(fixtures, 'info.json'), 'utf8')) as {
  sha256: string;
  bytes: number;
  blocks: Record<string, { type: string; bytes: string }>;
};

let source: TensorSource;
beforeAll(async () => {
  const model = await realModel('smollm2-135m-instruct');
  const file = model.record.files.find(({ role }) => role === 'weights');
  expect(file).toMatchObject({ sha256: info.sha256, sizeBytes: info.bytes });
  source = model.openWeights();
});
afterAll(() => source?.close());

const parts = (name: string): [string, number | null] => {
  const [tensor, row] = name.split(':') as [string, string | undefined];
  return [tensor, row === undefined ? null : Number(row)];
};

test('dequantised rows are those of the reference', () => {
  const rows = openSafetensorsFile(join(fixtures, 'rows.safetensors'));
  const names = [...rows.tensors.keys()].filter((name) => !name.startsWith('transformers:'));
  expect(names.length).toBeGreaterThan(10);
  for (const name of names) {
    const [tensor, row] = parts(name);
    const expected = rows.readFloat32(name);
    const values = source.readFloat32(tensor);
    const found = row === null ? values : values.subarray(row * expected.length, (row + 1) * expected.length);
    const scale = Math.max(...expected.map(Math.abs));
    const worst = Math.max(...expected.map((value, i) => Math.abs(value - (found[i] as number))));
    expect([name, worst / scale]).toEqual([name, expect.any(Number)]);
    expect(worst / scale).toBeLessThanOrEqual(1e-6);
  }
  rows.close();
});

test('stored blocks are byte for byte those of the file', () => {
  for (const [name, { type, bytes }] of Object.entries(info.blocks)) {
    const [tensor, row] = parts(name);
    const { shape, type: found, byteLength } = source.tensors.get(tensor) as TensorInfo;
    const rowBytes = byteLength / (shape[0] as number);
    const expected = Buffer.from(bytes, 'hex');
    const raw = source.readRaw(tensor).subarray((row as number) * rowBytes);
    expect([found, Buffer.from(raw.subarray(0, expected.length)).equals(expected)]).toEqual([type, true]);
  }
});

test('the embedding table, Q8_0 in the file, quantises to the very same bytes', () => {
  const { shape, type } = source.tensors.get('token_embd.weight') as TensorInfo;
  expect(type).toBe('Q8_0');
  const [rows, columns] = shape as [number, number];
  const bytes = toQ8Bytes(quantise8(source.readFloat32('token_embd.weight'), rows, columns));
  expect(Buffer.compare(bytes, source.readRaw('token_embd.weight'))).toBe(0);
});
