// The file that hnswlib writes, read without hnswlib. Its own loader trusts the header, so a file of another
// dimension loads and then returns rubbish or ends the process; the header is checked here first.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { FileFormatError, IntegrityError } from '../../errors.js';

const HEADER_BYTES = 96;
const LABEL_BYTES = 8;
const CHUNK_BYTES = 1 << 22;

export interface HnswFileHeader {
  readonly capacity: number;
  /** Elements in the graph, deleted ones included. */
  readonly count: number;
  readonly dimension: number;
  readonly M: number;
  readonly efConstruction: number;
  readonly fileBytes: number;
  /** Bytes of one element on level 0: links, vector, label. */
  readonly elementBytes: number;
  /** Place of the vector and of the label inside an element. */
  readonly vectorOffset: number;
  readonly labelOffset: number;
}

/**
 * Reads the header and checks that its numbers agree with each other and with the size of the file.
 * @throws {FileFormatError} not such a file, or cut short; the message names the file and the field
 */
export function readHnswHeader(path: string): HnswFileHeader {
  const file = openSync(path, 'r');
  try {
    const fileBytes = fstatSync(file).size;
    const bytes = Buffer.alloc(HEADER_BYTES);
    if (readSync(file, bytes, 0, HEADER_BYTES, 0) < HEADER_BYTES)
      throw new FileFormatError(
        `${path}: an HNSW file has at least ${HEADER_BYTES} bytes, this one ${fileBytes}`,
      );
    return parseHeader(path, bytes, fileBytes);
  } finally {
    closeSync(file);
  }
}

/** Layout: hnswlib 0.8.0, `HierarchicalNSW::saveIndex`, 64-bit little endian. */
function parseHeader(path: string, bytes: Buffer, fileBytes: number): HnswFileHeader {
  const size = (at: number): number => Number(bytes.readBigUInt64LE(at));
  const [capacity, count, elementBytes, labelOffset, vectorOffset] = [8, 16, 24, 32, 40].map(size) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const [maxM0, M, efConstruction] = [64, 72, 88].map(size) as [number, number, number];
  const vectorBytes = labelOffset - vectorOffset;
  const expect = (field: string, wanted: number, came: number): void => {
    if (wanted !== came)
      throw new FileFormatError(`${path}: HNSW header, ${field}: expected ${wanted}, came ${came}`);
  };
  expect('offset of level 0', 0, size(0));
  expect('links on level 0', 2 * M, maxM0);
  expect('offset of vectors', 4 * maxM0 + 4, vectorOffset);
  expect('bytes of an element', labelOffset + LABEL_BYTES, elementBytes);
  expect('bytes of a vector modulo 4', 0, vectorBytes % 4);
  const leastBytes = HEADER_BYTES + count * (elementBytes + 4);
  if (vectorBytes <= 0 || count > capacity || leastBytes > fileBytes)
    throw new FileFormatError(
      `${path}: HNSW header says ${count} elements of ${elementBytes} bytes (capacity ${capacity}), the file has ${fileBytes} bytes`,
    );
  return {
    capacity,
    count,
    dimension: vectorBytes / 4,
    M,
    efConstruction,
    fileBytes,
    elementBytes,
    vectorOffset,
    labelOffset,
  };
}

/**
 * Checks that a file ends with the last list of links of the upper levels, of which the header says nothing.
 * @throws {FileFormatError} it is cut short, or longer
 */
export function checkHnswEnd(path: string): void {
  const { count, elementBytes, fileBytes } = readHnswHeader(path);
  const chunk = Buffer.alloc(CHUNK_BYTES);
  const file = openSync(path, 'r');
  try {
    let [first, held] = [0, 0];
    let at = HEADER_BYTES + count * elementBytes;
    for (let element = 0; element < count; element++) {
      if (at + 4 > first + held) {
        first = at;
        held = readSync(file, chunk, 0, CHUNK_BYTES, first);
      }
      if (held < 4) throw new FileFormatError(`${path}: ends before the links of element ${element}`);
      at += 4 + chunk.readUInt32LE(at - first);
    }
    if (at !== fileBytes)
      throw new FileFormatError(`${path}: its links end at byte ${at}, the file has ${fileBytes} bytes`);
  } finally {
    closeSync(file);
  }
}

/** @throws {IntegrityError} the file holds vectors of another length */
export function checkDimension(path: string, header: HnswFileHeader, dimension: number): void {
  if (header.dimension !== dimension)
    throw new IntegrityError(
      `${path}: expected vectors of dimension ${dimension}, the file holds dimension ${header.dimension}`,
      { details: { expected: dimension, actual: header.dimension } },
    );
}

export interface StoredVector {
  readonly label: number;
  /** A view that the next step overwrites. */
  readonly vector: Float32Array;
  readonly deleted: boolean;
}

/** All stored vectors in the order of insertion, with bounded memory. */
export function* readHnswVectors(path: string): Generator<StoredVector> {
  const header = readHnswHeader(path);
  const { elementBytes, vectorOffset, labelOffset, dimension, count } = header;
  const perChunk = Math.max(1, Math.floor(CHUNK_BYTES / elementBytes));
  const chunk = Buffer.alloc(perChunk * elementBytes);
  const vector = new Float32Array(dimension);
  const vectorBytes = Buffer.from(vector.buffer);
  const file = openSync(path, 'r');
  try {
    for (let first = 0; first < count; first += perChunk) {
      const here = Math.min(perChunk, count - first);
      const wanted = here * elementBytes;
      if (readSync(file, chunk, 0, wanted, HEADER_BYTES + first * elementBytes) < wanted)
        throw new FileFormatError(`${path}: ends inside element ${first}`);
      for (let i = 0; i < here; i++) {
        const at = i * elementBytes;
        chunk.copy(vectorBytes, 0, at + vectorOffset, at + labelOffset);
        const deleted = (chunk[at + 2] as number) !== 0;
        yield { label: Number(chunk.readBigUInt64LE(at + labelOffset)), vector, deleted };
      }
    }
  } finally {
    closeSync(file);
  }
}

/** Labels whose element carries the mark of deletion. */
export function readDeletedLabels(path: string): Set<number> {
  const labels = new Set<number>();
  for (const { label, deleted } of readHnswVectors(path)) if (deleted) labels.add(label);
  return labels;
}
