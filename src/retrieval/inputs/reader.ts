// What every kind of input gives the index builder: passages in a fixed order, each with a place from which
// reading can go on after a crash.

import type { PassageInput } from '../passages/passage-store.js';

/** Opaque to the builder; stored as JSON. */
export type ReaderPosition = Readonly<Record<string, string | number>>;

export interface ReadPassage {
  readonly passage: PassageInput;
  /** For messages: file and line, or page. */
  readonly where: string;
  /** Reading from here gives what follows this passage. */
  readonly position: ReaderPosition;
  /** Bytes of the input (as stored) that were read so far. */
  readonly bytes: number;
}

export interface ReadOptions {
  /** Null: from the beginning. */
  readonly from: ReaderPosition | null;
  /** Called for an entry that cannot be read, with the reason and its place. It throws unless such are skipped. */
  readonly onBad: (error: Error) => void;
  /** Called for an entry that is sound but beyond a limit of this reader, with the reason and its place. */
  readonly onLeftOut?: (reason: string) => void;
  readonly signal?: AbortSignal;
}

export interface PassageReader {
  readonly kind: string;
  /** Names the input's content as well as it can be had without reading it: a resumed build compares it. */
  readonly fingerprint: string;
  /** Size of the input as stored. */
  readonly totalBytes: number;
  /**
   * @throws {InvalidInputError} an entry that breaks the format (through `onBad`)
   * @throws {FileFormatError} the file itself is broken (a cut-off gz)
   * @throws {CancelledError} the signal fired
   */
  read(options: ReadOptions): AsyncGenerator<ReadPassage>;
}

export interface ReaderKind {
  readonly kind: string;
  /** For messages: what this kind reads. */
  readonly description: string;
  accepts(input: { readonly path: string; readonly isFolder: boolean }): boolean;
  open(path: string): Promise<PassageReader>;
}
