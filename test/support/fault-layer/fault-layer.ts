// Builds the layer below and steers it.

import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

export type Fault = 'none' | 'full' | 'readonly' | `stall ${number}`;

export interface FaultLayer {
  /** Files below it are under the layer. */
  readonly folder: string;
  /** Environment of a process that shall run on the layer. */
  readonly environment: Record<string, string>;
  set(fault: Fault): void;
  /** After a kill: takes back what was written and not synced. @returns number of writes taken back */
  cutPower(): number;
}

/** @param folder  an empty folder for the layer's own files and the guarded ones */
export function createFaultLayer(folder: string): FaultLayer {
  const library = join(folder, 'faults.so');
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', library, join(__dirname, 'faults.c'), '-ldl']);
  const control = join(folder, 'control');
  const undo = join(folder, 'undo');
  const guarded = join(folder, 'disk');
  mkdirSync(undo);
  mkdirSync(guarded);
  writeFileSync(control, 'none');
  return {
    folder: guarded,
    environment: {
      LD_PRELOAD: library,
      FAULT_FOLDER: guarded,
      FAULT_CONTROL: control,
      FAULT_UNDO: undo,
    },
    set(fault) {
      // Never half a word.
      writeFileSync(`${control}.new`, fault);
      renameSync(`${control}.new`, control);
    },
    cutPower() {
      let taken = 0;
      for (const name of readdirSync(undo)) {
        const file = join(guarded, name);
        taken += existsSync(file) ? takeBack(file, readFileSync(join(undo, name))) : 0;
        writeFileSync(join(undo, name), '');
      }
      return taken;
    },
  };
}

const HEAD = 24;

function takeBack(file: string, log: Buffer): number {
  const writes: { offset: number; size: number; old: Buffer }[] = [];
  for (let at = 0; at + HEAD <= log.length; ) {
    const number = (index: number): number => Number(log.readBigUInt64LE(at + 8 * index));
    const length = number(2);
    // The last note may have been cut off by the kill: then its write did not happen.
    if (at + HEAD + length > log.length) break;
    writes.push({ offset: number(0), size: number(1), old: log.subarray(at + HEAD, at + HEAD + length) });
    at += HEAD + length;
  }
  const handle = openSync(file, 'r+');
  try {
    for (const { offset, size, old } of writes.reverse()) {
      if (old.length > 0) writeSync(handle, old, 0, old.length, offset);
      truncateSync(file, size);
    }
  } finally {
    closeSync(handle);
  }
  return writes.length;
}
