import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { CancelledError, InvalidInputError } from '../../errors.js';
import { fileFingerprint } from '../inputs/fingerprint.js';
import type { PassageReader, ReaderKind, ReadOptions, ReadPassage } from '../inputs/reader.js';
import { type DumpPlace, readDump } from './dump-chunks.js';
import { PAGE_LIMITS, type PageLimits, type PageOutcome } from './page-outcome.js';
import { type PagePool, startPagePool } from './page-pool.js';
import { type PageSlice, slicePages } from './page-slices.js';

/** Pages that a thread gets at a time. */
const BATCH_PAGES = 64;
const BATCH_BYTES = 512 * 1024;
/** Below this a second thread takes longer to start than it saves. */
const SMALL_DUMP_BYTES = 1024 * 1024;

/** Wikipedia's XML dumps: articles only, cut into passages of about 100 words. Ids are `<page id>#<number>`. */
export const wikipediaReader: ReaderKind = createWikipediaReader(PAGE_LIMITS);

export function createWikipediaReader(limits: PageLimits): ReaderKind {
  return {
    kind: 'wikipedia',
    description: 'a Wikipedia dump, .xml or .xml.bz2 (multistream too)',
    accepts: ({ path, isFolder }) => !isFolder && /\.xml(-p\d+p\d+)?(\.bz2)?$/i.test(path),
    open: async (path): Promise<PassageReader> => {
      const { size } = await stat(path);
      return {
        kind: 'wikipedia',
        fingerprint: await fileFingerprint(path, size),
        totalBytes: size,
        read: (options) =>
          readPassages(path, limits, size < SMALL_DUMP_BYTES ? 1 : availableParallelism(), options),
      };
    },
  };
}

interface Batch {
  readonly slices: readonly PageSlice[];
  readonly outcomes: Promise<PageOutcome[]>;
}

/** A position is the place of a page and how many of its passages are done; that page is read again up to there. */
async function* readPassages(
  path: string,
  limits: PageLimits,
  threads: number,
  options: ReadOptions,
): AsyncGenerator<ReadPassage> {
  const pool = startPagePool({ threads, timeoutMs: limits.timeoutMs });
  const place = placeOf(options);
  const done = Number(options.from?.['passage'] ?? 0);
  const chunks = readDump(path, place, options.signal);
  const slices = slicePages(chunks, {
    path,
    maxPageBytes: limits.maxPageBytes,
    resumed: options.from !== null,
  });
  let first = true;
  try {
    for await (const { slices: pages, outcomes } of inOrder(slices, path, pool, limits, options.signal))
      for (const [i, outcome] of (await outcomes).entries()) {
        const skip = first ? done : 0;
        first = false;
        if (outcome.kind === 'passages') yield* passagesOf(outcome, pages[i] as PageSlice, path, skip);
        else if (outcome.kind === 'bad') options.onBad(new InvalidInputError(outcome.reason));
        else options.onLeftOut?.(outcome.reason);
      }
  } finally {
    await pool.close();
  }
}

function placeOf({ from }: ReadOptions): DumpPlace {
  return { block: Number(from?.['block'] ?? 0), offset: Number(from?.['offset'] ?? 0) };
}

const whereIs = (path: string, { title, place }: PageSlice): string =>
  `${path}: page "${title}" (${place.block === 0 ? '' : `block at bit ${place.block}, `}byte ${place.offset})`;

function* passagesOf(
  { id, title, texts }: Extract<PageOutcome, { kind: 'passages' }>,
  slice: PageSlice,
  path: string,
  skip: number,
): Generator<ReadPassage> {
  for (const [i, text] of texts.entries()) {
    if (i < skip) continue;
    const position = { ...slice.place, passage: i + 1 };
    yield {
      passage: { id: `${id}#${i + 1}`, title, text },
      where: whereIs(path, slice),
      position,
      bytes: slice.fileBytes,
    };
  }
}

/** Batches in the order of the file, a few of them read ahead by the pool. */
async function* inOrder(
  slices: AsyncIterable<PageSlice>,
  path: string,
  pool: PagePool,
  limits: PageLimits,
  signal?: AbortSignal,
): AsyncGenerator<Batch> {
  const ahead: Batch[] = [];
  const start = (pages: readonly PageSlice[]): void => {
    const outcomes = readBatch(pages, path, pool, limits, signal);
    // Awaited in its turn; a failure before that is not an unhandled one.
    outcomes.catch(() => {});
    ahead.push({ slices: pages, outcomes });
  };
  let pages: PageSlice[] = [];
  let bytes = 0;
  for await (const slice of slices) {
    if (signal?.aborted) throw new CancelledError();
    pages.push(slice);
    bytes += slice.bytes?.length ?? 0;
    if (pages.length < BATCH_PAGES && bytes < BATCH_BYTES) continue;
    start(pages);
    pages = [];
    bytes = 0;
    if (ahead.length > 2 * pool.threads) yield ahead.shift() as Batch;
  }
  if (pages.length > 0) start(pages);
  yield* ahead;
}

async function readBatch(
  slices: readonly PageSlice[],
  path: string,
  pool: PagePool,
  { maxPageBytes }: PageLimits,
  signal?: AbortSignal,
): Promise<PageOutcome[]> {
  const read = slices.filter(({ bytes }) => bytes !== null);
  const outcomes = await pool.read(
    // Copies: a view would carry the whole block to the thread.
    read.map((slice) => ({ bytes: new Uint8Array(slice.bytes as Buffer), where: whereIs(path, slice) })),
    signal,
  );
  return slices.map((slice): PageOutcome => {
    if (slice.bytes !== null) return outcomes.shift() as PageOutcome;
    return { kind: 'leftOut', reason: `${whereIs(path, slice)}: it has more than ${maxPageBytes} bytes` };
  });
}
