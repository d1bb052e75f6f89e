import { existsSync } from 'node:fs';
import { mkdir, rm, rmdir } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { InvalidInputError, UnavailableError } from '../../errors.js';
import { isLocked, openDatabase } from '../../storage/index.js';
import type { OnProgress } from '../../util/progress.js';
import { type Claim, claim } from '../../weights/index.js';
import type { Embedder } from '../embedder/embedder.js';
import type { IndexManifest } from '../folder/manifest.js';
import { type HnswSettings, LINKS, type Metric } from '../hnsw/hnsw-index.js';
import type { PassageReader } from '../inputs/reader.js';
import { openReader } from '../inputs/registry.js';
import { PassageStore } from '../passages/passage-store.js';
import { buildGraph } from './build-graph.js';
import { type BuildFolder, beginBuild, buildFolder } from './build-state.js';
import { embedPassages } from './embed-passages.js';
import { ingest } from './ingest.js';
import { publishStaged, stageManifest } from './publish.js';
import { openVectorFile } from './vector-file.js';

export interface BuildOptions {
  /** File or folder; see the readers in inputs/. */
  readonly input: string;
  /** Folder of the index. An index that is there stays in use until the new one is complete. */
  readonly output: string;
  /** Default: the folder's name. */
  readonly name?: string;
  readonly embedder: Embedder;
  readonly skipBad?: boolean;
  /** Throw away an unfinished build in the folder. */
  readonly restart?: boolean;
  readonly metric?: Metric;
  readonly M?: number;
  readonly efConstruction?: number;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

export const GRAPH_DEFAULTS = { metric: 'cosine', M: 16, efConstruction: 200 } as const;

/**
 * Builds an index: reads passages, embeds them, joins the vectors to a graph, publishes the folder. Memory is
 * bounded but for the graph. After a kill or Ctrl-C the same call goes on where it stopped. One that fails before
 * it has a passage leaves nothing behind.
 * @throws {InvalidInputError} a bad entry or setting, or an unfinished build of another request in the folder
 * @throws {UnavailableError} another process is building in the folder
 * @throws {CancelledError} the signal fired; the work so far is kept
 */
export async function buildIndex(options: BuildOptions): Promise<IndexManifest> {
  const output = resolve(options.output);
  const name = options.name ?? basename(output);
  if (name === '') throw new InvalidInputError('an index needs a name', 'name');
  const place = buildFolder(output);
  const reader = await openReader(options.input);
  const settings = settingsOf(options);
  const isNew = (await mkdir(output, { recursive: true })) !== undefined;
  let held: Claim | null = null;
  let isDone = false;
  try {
    held = await claimBuild(output, place, options.signal);
    await beginBuild(place, requestOf(reader, settings, options), options.restart ?? false);
    // A build that was stopped between its last stage and its end only needs its files moved.
    let manifest = await publishStaged(output, place, options.signal);
    if (manifest === null) {
      await runStages(place, reader, name, settings, options);
      manifest = (await publishStaged(output, place, options.signal)) as IndexManifest;
    }
    isDone = true;
    return manifest;
  } finally {
    await held?.release(true);
    // Refused where something is left to go on with.
    if (isNew && !isDone) await rmdir(output).catch(() => {});
  }
}

/**
 * Keeps other builds out of the folder, from before the first look at an unfinished build to after the last of it
 * is gone. A claim does not tell at once whether its owner lives; the lock on its passages does.
 * @throws {UnavailableError} another process is building
 */
async function claimBuild(
  output: string,
  place: BuildFolder,
  signal: AbortSignal | undefined,
): Promise<Claim> {
  const refused = new AbortController();
  try {
    return await claim({
      folder: output,
      key: '.building',
      kind: 'file',
      onWait: () => isBuilding(place) && refused.abort(),
      signal: AbortSignal.any(signal === undefined ? [refused.signal] : [refused.signal, signal]),
    });
  } catch (cause) {
    if (refused.signal.aborted)
      throw new UnavailableError(`${place.folder}: another process is building this index`, { cause });
    throw cause;
  }
}

function isBuilding(place: BuildFolder): boolean {
  if (!existsSync(place.passagesFile)) return false;
  try {
    openDatabase(place.passagesFile, { readonly: true, busyTimeoutMs: 0 }).close();
    return false;
  } catch (error) {
    return isLocked(error);
  }
}

async function runStages(
  place: BuildFolder,
  reader: PassageReader,
  name: string,
  settings: HnswSettings,
  options: BuildOptions,
): Promise<void> {
  const { embedder, onProgress, signal, skipBad = false } = options;
  const store = openBuildStore(place);
  try {
    await ingest(reader, store, { skipBad, onProgress, signal });
    const vectors = openVectorFile(place.vectorsFile, settings.dimension, Number(store.meta('vectors') ?? 0));
    try {
      await embedPassages(store, vectors, embedder, { onProgress, signal });
      await buildGraph(vectors, place.graphFile, settings, { onProgress, signal });
    } finally {
      vectors.close();
    }
    await stageManifest(place, store, {
      name,
      input: { path: resolve(options.input), kind: reader.kind, bytes: reader.totalBytes },
      embedder: embedder.info,
      settings,
    });
  } catch (error) {
    // Nothing to go on with; while the lock still keeps others out.
    if (store.count === 0) await rm(place.folder, { recursive: true, force: true });
    throw error;
  } finally {
    store.close();
  }
}

/** The store of an unfinished build, locked for this process as long as it is open. */
function openBuildStore(place: BuildFolder): PassageStore {
  const db = openDatabase(place.passagesFile, { synchronous: 'NORMAL', busyTimeoutMs: 100 });
  try {
    db.pragma('locking_mode = EXCLUSIVE');
    db.exec('BEGIN EXCLUSIVE; COMMIT');
    return new PassageStore(db, place.passagesFile);
  } catch (cause) {
    db.close();
    if (isLocked(cause))
      throw new UnavailableError(`${place.folder}: another process is building this index`, { cause });
    throw cause;
  }
}

function settingsOf(options: BuildOptions): HnswSettings {
  const { M = GRAPH_DEFAULTS.M } = options;
  if (!(Number.isInteger(M) && M >= LINKS.least && M <= LINKS.most))
    throw new InvalidInputError(
      `expected ${LINKS.least} to ${LINKS.most} links of a passage in the graph, came ${M}`,
      'M',
    );
  return {
    dimension: options.embedder.info.dimension,
    metric: options.metric ?? GRAPH_DEFAULTS.metric,
    M,
    efConstruction: options.efConstruction ?? GRAPH_DEFAULTS.efConstruction,
  };
}

function requestOf(reader: PassageReader, settings: HnswSettings, options: BuildOptions) {
  return {
    input: reader.fingerprint,
    inputKind: reader.kind,
    skipBad: options.skipBad ?? false,
    embedderId: options.embedder.info.id,
    embedderDigest: options.embedder.info.digest,
    ...settings,
  };
}
