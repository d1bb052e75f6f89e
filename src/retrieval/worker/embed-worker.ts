// Entry of a thread that embeds passages for a build: one session of one thread, at low priority.

import { type Method, serveWorker, transferring } from '../../runtime/index.js';
import type { TextKind } from '../embedder/embedder.js';
import { openEncoderEmbedder } from '../embedder/encoder-embedder.js';
import type { EncoderSource } from '../embedder/encoder-source.js';

export interface EmbedMethods {
  /** The dimension of the vectors. */
  dimension: Method<void, number>;
  embed: Method<{ readonly texts: readonly string[]; readonly kind: TextKind }, Float32Array>;
}

export interface EmbedWorkerData {
  readonly encoder: EncoderSource;
  readonly threads: number;
}

serveWorker<EmbedMethods, EmbedWorkerData>(async ({ encoder, threads }) => {
  const embedder = await openEncoderEmbedder(encoder, { threads });
  return {
    methods: {
      dimension: () => embedder.info.dimension,
      embed: async ({ texts, kind }, { signal }) => {
        const matrix = await embedder.embed(texts, kind, { signal });
        return transferring(matrix, [matrix.buffer as ArrayBuffer]);
      },
    },
    close: () => embedder.close(),
  };
});
