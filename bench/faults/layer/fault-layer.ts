// Builds the layer beside this file and steers it.

import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { packageRoot } from '#searchloop/config/index.js';

export type Fault = 'none' | 'full' | 'readonly' | 'unsynced' | `stall ${number}` | `clock ${number}`;

export interface FaultLayer {
  /** Files below it are under the layer. */
  readonly folder: string;
  /** Environment of a process that shall run on the layer. */
  readonly environment: Record<string, string>;
  /** What holds from now on, all at once. */
  set(...faults: readonly Fault[]): void;
  /**
   * After a kill: takes back what was written and not synced, and renames in folders that were not synced.
   * @param survives  which of the writes reached the disk all the same; default: none
   * @returns number of writes and renames taken back
   */
  cutPower(survives?: () => boolean): number;
}

/** @param folder  an empty folder for the layer's own files and the guarded ones */
export function createFaultLayer(folder: string): FaultLayer {
  const library = join(folder, 'faults.so');
  const source = join(packageRoot, 'bench', 'faults', 'layer', 'faults.c');
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl']);
  const control = join(folder, 'control');
  const undo = join(folder, 'undo');
  const guarded = join(folder, 'disk');
  mkdirSync(undo, { recursive: true });
  mkdirSync(guarded, { recursive: true });
  writeFileSync(control, 'none');
  return {
    folder: guarded,
    environment: {
      LD_PRELOAD: library,
      FAULT_FOLDER: guarded,
      FAULT_CONTROL: control,
      FAULT_UNDO: undo,
    },
    set(...faults) {
      // Never half a word.
      writeFileSync(`${control}.new`, faults.join(','));
      renameSync(`${control}.new`, control);
    },
    cutPower(survives = () => false) {
      let taken = takeBackRenames(undo, guarded);
      for (const name of notesIn(undo)) {
        const file = join(guarded, name.slice(WRITES.length).replaceAll('%', '/'));
        if (existsSync(file)) taken += takeBack(file, readFileSync(join(undo, name)), survives);
      }
      rmSync(undo, { recursive: true });
      mkdirSync(undo);
      return taken;
    },
  };
}

const WRITES = 'writes';
const RENAME = /^rename\.\d+$/;

const notesIn = (undo: string): string[] => readdirSync(undo).filter((name) => name.startsWith(WRITES));

function takeBackRenames(undo: string, guarded: string): number {
  const names = readdirSync(undo).filter((name) => RENAME.test(name));
  let taken = 0;
  for (const name of names.sort().reverse()) {
    const [from, to, saved] = readFileSync(join(undo, name), 'utf8').split('\n');
    if (from === undefined || to === undefined || !existsSync(to) || !existsSync(dirname(from))) continue;
    renameSync(to, from);
    if (saved) renameSync(saved, to);
    moveNotes(undo, noteOf(guarded, to), noteOf(guarded, from));
    taken += 1;
  }
  return taken;
}

const noteOf = (guarded: string, file: string): string =>
  WRITES + file.slice(guarded.length).replaceAll('/', '%');

/** The notes of a file, or of all files in a folder, go where these go. */
function moveNotes(undo: string, from: string, to: string): void {
  for (const name of notesIn(undo))
    if (name === from || name.startsWith(`${from}%`))
      renameSync(join(undo, name), join(undo, to + name.slice(from.length)));
}

const HEAD = 32;

interface Note {
  readonly offset: number;
  /** Of the file before. */
  readonly size: number;
  readonly old: Buffer;
  /** What was written, as far as nothing else was written over it later; null: it is lost. */
  readonly kept: Buffer | null;
}

function takeBack(file: string, log: Buffer, survives: () => boolean): number {
  const handle = openSync(file, 'r+');
  try {
    const notes: Note[] = [];
    for (let at = 0; at + HEAD <= log.length; ) {
      const number = (index: number): number => Number(log.readBigUInt64LE(at + 8 * index));
      const [offset, size, count, length] = [number(0), number(1), number(2), number(3)];
      // The last note may have been cut off by the kill: then its write did not happen.
      if (at + HEAD + length > log.length) break;
      const old = log.subarray(at + HEAD, at + HEAD + length);
      notes.push({ offset, size, old, kept: survives() ? bytesAt(handle, offset, count) : null });
      at += HEAD + length;
    }
    for (const { offset, size, old } of [...notes].reverse()) {
      if (old.length > 0) writeSync(handle, old, 0, old.length, offset);
      ftruncateSync(handle, size);
    }
    for (const { offset, kept } of notes)
      if (kept !== null && kept.length > 0) writeSync(handle, kept, 0, kept.length, offset);
    return notes.filter(({ kept }) => kept === null).length;
  } finally {
    closeSync(handle);
  }
}

function bytesAt(handle: number, offset: number, count: number): Buffer {
  const bytes = Buffer.alloc(count);
  return bytes.subarray(0, readSync(handle, bytes, 0, count, offset));
}
