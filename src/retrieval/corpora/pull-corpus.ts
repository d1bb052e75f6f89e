import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { OnProgress } from '../../util/progress.js';
import { pullFile } from '../../weights/index.js';
import { buildIndex } from '../build/build-index.js';
import type { Embedder } from '../embedder/embedder.js';
import { type IndexManifest, readManifest } from '../folder/manifest.js';
import type { Corpus } from './corpus.js';
import { type CorpusPlace, locateCorpus } from './locate-corpus.js';

export interface PullCorpusOptions extends CorpusPlace {
  /** Folder of `homeFolder(config)`; downloads lie in its `corpora/<id>`. */
  readonly home: string;
  /** Folder of the index. */
  readonly output: string;
  readonly embedder: Embedder;
  /** Throw away an unfinished build in the folder. */
  readonly restart?: boolean;
  readonly onProgress?: OnProgress;
  readonly onNote?: (line: string) => void;
}

export interface PulledCorpus {
  readonly manifest: IndexManifest;
  /** The download, kept so that the index can be built again. */
  readonly file: string;
  /** False when the index of this download was there already. */
  readonly built: boolean;
}

/**
 * Fetches a named corpus and builds its index. After a kill or Ctrl-C the same call goes on where it stopped.
 * @throws {DownloadError | NotFoundError | IntegrityError} it cannot be fetched, or comes with another sum
 * @throws {InvalidInputError} an unfinished build of something else lies in the folder
 * @throws {CancelledError} the signal fired
 */
export async function pullCorpus(corpus: Corpus, options: PullCorpusOptions): Promise<PulledCorpus> {
  const { home, output, embedder, restart, onProgress, onNote, signal } = options;
  const folder = join(home, 'corpora', corpus.id);
  const remote = await locateCorpus(corpus, options);
  onNote?.(`${remote.wanted.path} (${remote.wanted.sizeBytes} bytes) from ${remote.source.name}`);
  const file = await pullFile(remote, folder, { onProgress, onNote, signal });
  await removeOthers(folder, basename(file));
  const there = await readManifest(output).catch(() => null);
  if (there?.source.name === basename(file) && there.embedder.digest === embedder.info.digest)
    return { manifest: there, file, built: false };
  const manifest = await buildIndex({
    input: file,
    output,
    name: corpus.id,
    embedder,
    restart,
    onProgress,
    signal,
  });
  return { manifest, file, built: true };
}

/** Earlier versions of the corpus; parts of unfinished transfers stay, another process may work on them. */
async function removeOthers(folder: string, kept: string): Promise<void> {
  for (const name of await readdir(folder))
    if (name !== kept && !name.endsWith('.partial')) await rm(join(folder, name), { recursive: true });
}
