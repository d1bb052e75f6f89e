import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, indexesFolder, packageRoot } from '../config/index.js';
import { SearchloopError } from '../errors.js';
import type { OnProgress } from '../util/progress.js';
import { buildIndex } from './build/build-index.js';
import { digestOfInput } from './build/publish.js';
import type { Embedder } from './embedder/embedder.js';
import { type LocateOptions, locateEncoder } from './embedder/encoder-source.js';
import { openParallelEmbedder } from './embedder/parallel-embedder.js';
import { checkConsistency, type IndexManifest, readManifest } from './folder/manifest.js';

const DEMO_INDEX = 'demo';

export interface EnsureOptions {
  readonly input: string;
  readonly output: string;
  readonly name: string;
  /** Opened only when something has to be built. */
  readonly openEmbedder: () => Promise<Embedder>;
  /** Digest of the embedder that searches will use. */
  readonly embedderDigest: string;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

export interface Ensured {
  readonly manifest: IndexManifest;
  readonly built: boolean;
}

/**
 * The index in `output`, built when it is missing, damaged, of another embedder, or when the input has changed
 * since. Passages that were added to an index whose input did not change stay.
 */
export async function ensureIndex(options: EnsureOptions): Promise<Ensured> {
  const { input, output, name } = options;
  const there = await usable(output);
  if (there !== null && there.embedder.digest === options.embedderDigest) {
    const { sha256 } = there.source;
    if (sha256 === null || sha256 === (await digestOfInput(input))) return { manifest: there, built: false };
  }
  const embedder = await options.openEmbedder();
  try {
    const { onProgress, signal } = options;
    const build = (restart: boolean) =>
      buildIndex({ input, output, name, embedder, restart, onProgress, signal });
    // What another corpus or embedder left unfinished is of no use.
    const manifest = await build(false).catch((error) => {
      if (error instanceof SearchloopError && error.code === 'invalid_input') return build(true);
      throw error;
    });
    return { manifest, built: true };
  } finally {
    await embedder.close();
  }
}

async function usable(folder: string): Promise<IndexManifest | null> {
  try {
    const manifest = await readManifest(folder);
    checkConsistency(manifest);
    const whole = [manifest.passages.file, manifest.graph.file].every((file) =>
      existsSync(join(folder, file)),
    );
    return whole ? manifest : null;
  } catch (error) {
    if (error instanceof SearchloopError) return null;
    throw error;
  }
}

/** Its folder is not for other indexes: what is not made of the demo corpus is built anew there. */
export const demoIndexFolder = (config: Pick<Config, 'paths'>): string =>
  join(indexesFolder(config), DEMO_INDEX);

/**
 * The demo index, made of the corpus that comes with the project, in the index folder.
 * @throws {DownloadError} the embedding model is missing and cannot be fetched
 */
export async function ensureDemoIndex(
  config: Pick<Config, 'model' | 'paths'>,
  options: LocateOptions = {},
): Promise<Ensured> {
  const files = await locateEncoder(config, options);
  return ensureIndex({
    input: join(packageRoot, 'index', DEMO_INDEX, 'corpus.jsonl'),
    output: demoIndexFolder(config),
    name: DEMO_INDEX,
    embedderDigest: files.digest,
    openEmbedder: () => openParallelEmbedder(files),
    ...options,
  });
}
