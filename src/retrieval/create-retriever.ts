import { type Config, indexesFolder } from '../config/index.js';
import { type LocateOptions, locateEncoder } from './embedder/encoder-source.js';
import { createRemoteRetriever } from './engines/remote.js';
import { indexFolder } from './folder/local-index.js';
import { checkK, openLocalRetriever } from './local-retriever.js';
import type { Retriever } from './retriever.js';

/**
 * The retriever that the configuration asks for. One over an index of ours runs in a worker thread of its own; the
 * embedding model is fetched when it is missing.
 * @throws {NotFoundError | IntegrityError | UnavailableError} the index cannot be used as it is
 */
export async function createRetriever(
  config: Pick<Config, 'retrieval' | 'model' | 'paths'>,
  options: LocateOptions = {},
): Promise<Retriever> {
  const { kind, remoteUrl, timeoutMs, index, ef, threads, queryCacheEntries } = config.retrieval;
  if (kind === 'remote') return withCheckedK(createRemoteRetriever({ url: remoteUrl as string, timeoutMs }));
  const folder = indexFolder(indexesFolder(config), index);
  return openLocalRetriever({
    kind,
    folder,
    ef,
    threads,
    cacheEntries: queryCacheEntries,
    timeoutMs,
    locateEncoder: () => locateEncoder(config, options),
  });
}

function withCheckedK(retriever: Retriever): Retriever {
  return {
    ...retriever,
    search: async (queries, k, options) => {
      checkK(k);
      return retriever.search(queries, k, options);
    },
  };
}
