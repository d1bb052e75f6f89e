// Entry of the retriever's worker: owns the graph, the embedder's session and the connection to the passages.

import { serveWorker } from '../../runtime/index.js';
import type { Embedder } from '../embedder/embedder.js';
import { openEncoderEmbedder } from '../embedder/encoder-embedder.js';
import type { EncoderSource } from '../embedder/encoder-source.js';
import { createSearchService } from '../engines/search-service.js';
import { LocalIndex } from '../folder/local-index.js';
import { checkEmbedder, readManifest } from '../folder/manifest.js';
import type { IndexState, SearchMethods, SearchWorkerData } from './messages.js';

serveWorker<SearchMethods, SearchWorkerData>(async (data) => {
  const openEmbedder = async (encoder: EncoderSource): Promise<Embedder> => {
    const opened = await openEncoderEmbedder(encoder, { threads: data.threads });
    checkEmbedder(await readManifest(data.folder), opened.info);
    return opened;
  };
  const embedder = data.encoder === null ? null : await openEmbedder(data.encoder);
  const index = await LocalIndex.open(data.folder, { withGraph: data.kind !== 'bm25' });
  const { kind, ef, cacheEntries } = data;
  const service = createSearchService({ index, kind, ef, embedder, cacheEntries });
  const state = (): IndexState => ({
    name: index.manifest.name,
    passageCount: index.count,
    snapshotId: index.snapshotId,
  });
  return {
    methods: {
      state,
      search: async ({ queries, k }, { signal }) => {
        const passages = await service.search(queries, k, signal);
        return { passages, state: state() };
      },
    },
    close: async () => {
      index.close();
      await embedder?.close();
    },
  };
});
