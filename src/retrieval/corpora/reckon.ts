import { GRAPH_DEFAULTS } from '../build/build-index.js';
import type { Corpus } from './corpus.js';
import type { Rates } from './rates.js';

/** What an index of a corpus takes, about. */
export interface Reckoning {
  readonly passages: number;
  readonly embedSeconds: number;
  readonly graphSeconds: number;
  readonly memoryBytes: number;
  /** Download (where its size is known), the finished index, and what a build holds besides. */
  readonly diskBytes: number;
  readonly indexBytes: number;
}

/** Threads, models and caches of a build, whatever its size. */
const BASE_MEMORY_BYTES = 1e9;
/** A passage of 100 words with its rows in the full-text index. */
const STORED_PASSAGE_BYTES = 2_000;
/** hnswlib's own records beside vectors and links: label, lock, list pointer, entry of the label table. */
const GRAPH_RECORD_BYTES = 120;
const FLOAT_BYTES = 4;
const LINK_BYTES = 4;

/**
 * @param passages  number to reckon for
 * @param dimension  of the vectors
 */
export function reckon(
  { about }: Pick<Corpus, 'about'>,
  passages: number,
  rates: Rates,
  dimension: number,
): Reckoning {
  const vectorBytes = passages * dimension * FLOAT_BYTES;
  const linkBytes = passages * 2 * GRAPH_DEFAULTS.M * LINK_BYTES;
  const indexBytes = passages * STORED_PASSAGE_BYTES + vectorBytes + linkBytes;
  // An insert searches the graph first, which takes steps as the logarithm of its size.
  const growth = Math.max(1, Math.log(passages) / Math.log(rates.graphSize));
  return {
    passages,
    embedSeconds: passages / rates.passagesPerSecond,
    graphSeconds: (passages / rates.insertsPerSecond) * growth,
    memoryBytes: BASE_MEMORY_BYTES + vectorBytes + linkBytes + passages * GRAPH_RECORD_BYTES,
    diskBytes: (about.compressedBytes ?? 0) + indexBytes + vectorBytes,
    indexBytes,
  };
}
