// Figures as a TensorBoard event file: framed protobuf messages `Event` of tensorboard/compat/proto/event.proto.

import { open } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import protobuf from 'protobufjs/minimal.js';
import { maskedCrc32c } from './crc32c.js';

export interface EventFile {
  write(step: number, figures: Readonly<Record<string, number>>): Promise<void>;
  close(): Promise<void>;
}

/** Field numbers of the messages that are written. */
const EVENT = { wallTime: 1, step: 2, fileVersion: 3, summary: 5, sessionLog: 7 } as const;
const SUMMARY_VALUE = 1;
const VALUE = { tag: 1, simpleValue: 2 } as const;
const SESSION_STATUS = 1;
const SESSION_START = 1;

/** Field number and wire type of protobuf. */
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;
const key = (field: number, wireType: number): number => (field << 3) | wireType;

/**
 * Opens a new event file in the folder of a run. TensorBoard reads all files of a folder as one run; the start of a
 * session at `firstStep` takes back what an earlier file says of that step and later ones.
 */
export async function openEventFile(folder: string, firstStep: number): Promise<EventFile> {
  const seconds = Math.floor(Date.now() / 1000);
  const name = `events.out.tfevents.${seconds}.${hostname()}.${process.pid}.0`;
  const file = await open(join(folder, name), 'a');
  const append = (event: protobuf.Writer): Promise<void> => file.appendFile(framed(event.finish()));
  await append(eventAt().uint32(key(EVENT.fileVersion, BYTES)).string('brain.Event:2'));
  await append(
    eventAt(firstStep)
      .uint32(key(EVENT.sessionLog, BYTES))
      .fork()
      .uint32(key(SESSION_STATUS, VARINT))
      .int32(SESSION_START)
      .ldelim(),
  );
  return {
    async write(step, figures) {
      const event = eventAt(step).uint32(key(EVENT.summary, BYTES)).fork();
      for (const [tag, value] of Object.entries(figures))
        event
          .uint32(key(SUMMARY_VALUE, BYTES))
          .fork()
          .uint32(key(VALUE.tag, BYTES))
          .string(tag)
          .uint32(key(VALUE.simpleValue, FIXED32))
          .float(value)
          .ldelim();
      await append(event.ldelim());
    },
    close: () => file.close(),
  };
}

function eventAt(step = 0): protobuf.Writer {
  return protobuf.Writer.create()
    .uint32(key(EVENT.wallTime, FIXED64))
    .double(Date.now() / 1000)
    .uint32(key(EVENT.step, VARINT))
    .int64(step);
}

/** Length, its sum, the message, its sum. */
function framed(message: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(message.length + 16);
  bytes.writeBigUInt64LE(BigInt(message.length), 0);
  bytes.writeUInt32LE(maskedCrc32c(bytes.subarray(0, 8)), 8);
  bytes.set(message, 12);
  bytes.writeUInt32LE(maskedCrc32c(message), 12 + message.length);
  return bytes;
}
