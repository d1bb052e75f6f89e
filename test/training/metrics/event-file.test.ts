import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { crc32c, maskedCrc32c } from '../../../src/training/metrics/crc32c.js';
import { openEventFile } from '../../../src/training/metrics/event-file.js';

const folder = mkdtempSync(join(tmpdir(), 'searchloop-events-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The messages as TensorBoard's own definitions name them. */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message Event {
    double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog session_log = 7;
  }
  message Summary { message Value { string tag = 1; float simple_value = 2; } repeated Value value = 1; }
  message SessionLog { enum SessionStatus { UNSPECIFIED = 0; START = 1; STOP = 2; CHECKPOINT = 3; } SessionStatus status = 1; }
`);

function readEvents(file: string): Record<string, unknown>[] {
  const bytes = readFileSync(file);
  const events: Record<string, unknown>[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = Number(bytes.readBigUInt64LE(at));
    expect(bytes.readUInt32LE(at + 8)).toBe(maskedCrc32c(bytes.subarray(at, at + 8)));
    const message = bytes.subarray(at + 12, at + 12 + length);
    expect(bytes.readUInt32LE(at + 12 + length)).toBe(maskedCrc32c(message));
    const type = root.lookupType('Event');
    events.push(type.toObject(type.decode(message), { longs: Number, enums: String }));
    at += length + 16;
  }
  return events;
}

test('sums are those of the standard', () => {
  // RFC 3720, B.4, and the check value of the polynomial.
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
  expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  expect(crc32c(new Uint8Array(32).fill(255))).toBe(0x62a8ab43);
});

test('figures come back from the file; a session says where it begins', async () => {
  const file = await openEventFile(folder, 301);
  await file.write(301, { 'train/reward': 0.25, 'train/loss': -1e-3 });
  await file.write(70_000, { 'train/reward': 1 });
  await file.close();
  const [name] = readdirSync(folder) as [string];
  expect(name).toMatch(/^events\.out\.tfevents\.\d+\./);
  const [version, session, first, second] = readEvents(join(folder, name));
  expect(version).toMatchObject({ fileVersion: 'brain.Event:2' });
  expect(session).toMatchObject({ step: 301, sessionLog: { status: 'START' } });
  expect(first).toMatchObject({ step: 301, wallTime: expect.any(Number) });
  expect(first?.summary).toEqual({
    value: [
      { tag: 'train/reward', simpleValue: 0.25 },
      { tag: 'train/loss', simpleValue: Math.fround(-1e-3) },
    ],
  });
  expect(second).toMatchObject({ step: 70_000 });
});
