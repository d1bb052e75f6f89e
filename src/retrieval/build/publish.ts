import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { IntegrityError } from '../../errors.js';
import { syncFolder, writeFileAtomic } from '../../util/atomic-file.js';
import { canonicalJson, sha256File, sha256Hex } from '../../util/digest.js';
import type { EmbedderInfo } from '../embedder/embedder.js';
import { lockChanges } from '../folder/lock-changes.js';
import { FORMAT_VERSION, formatManifest, type IndexManifest, MANIFEST_FILE } from '../folder/manifest.js';
import { removeStrays } from '../folder/strays.js';
import type { HnswSettings } from '../hnsw/hnsw-index.js';
import type { PassageStore } from '../passages/passage-store.js';
import { type BuildFolder, readStagedManifest } from './build-state.js';

/** Larger inputs are not hashed: it would take minutes and is only used to see whether a build is stale. */
const MAX_HASHED_INPUT_BYTES = 256 * 1024 * 1024;

export interface Finished {
  readonly name: string;
  readonly input: { readonly path: string; readonly kind: string; readonly bytes: number };
  readonly embedder: EmbedderInfo;
  readonly settings: HnswSettings;
}

/** Last stage, first half: closes the store for good and writes down what the finished index will be. */
export async function stageManifest(
  place: BuildFolder,
  store: PassageStore,
  finished: Finished,
): Promise<void> {
  const { name, input, embedder, settings } = finished;
  const { count } = store;
  const contentDigest = await store.contentDigest();
  const snapshotId = sha256Hex(
    canonicalJson({ contentDigest, embedder: embedder.digest, metric: settings.metric }),
  );
  const [skipped, duplicates] = ['skipped', 'duplicates'].map((key) => Number(store.meta(key) ?? 0));
  store.setSnapshot(0, snapshotId);
  store.optimise();
  store.close();
  const tag = randomBytes(4).toString('hex');
  const manifest: IndexManifest = {
    formatVersion: FORMAT_VERSION,
    name,
    createdAt: new Date().toISOString(),
    source: {
      kind: input.kind,
      name: basename(input.path),
      bytes: input.bytes,
      sha256: await digestOfInput(input.path),
      skippedEntries: skipped as number,
      duplicateEntries: duplicates as number,
    },
    embedder: { id: embedder.id, digest: embedder.digest, dimension: embedder.dimension },
    passages: { file: `passages-${tag}.sqlite`, count, contentDigest },
    graph: {
      file: `graph-${tag}.bin`,
      bytes: (await stat(place.graphFile)).size,
      sha256: await sha256File(place.graphFile),
      count,
      ...settings,
    },
    revision: 0,
    snapshotId,
  };
  await writeFileAtomic(place.stagedManifest, formatManifest(manifest));
}

/** sha256 of an input file; null for folders and large files. */
export async function digestOfInput(path: string): Promise<string | null> {
  const found = await stat(path);
  return found.isFile() && found.size <= MAX_HASHED_INPUT_BYTES ? sha256File(path) : null;
}

/**
 * Last stage, second half: moves the files to their place, then the manifest, which makes them the index. May be
 * interrupted and repeated. The files of an earlier index go afterwards; who has them open keeps them.
 * @returns the manifest, or null when nothing was staged
 * @throws {CancelledError} the signal fired while another process changed the earlier index
 */
export async function publishStaged(
  output: string,
  place: BuildFolder,
  signal?: AbortSignal,
): Promise<IndexManifest | null> {
  const staged = await readStagedManifest(place);
  if (staged === null) return null;
  const moves = [
    [place.passagesFile, staged.passages.file],
    [place.graphFile, staged.graph.file],
  ] as const;
  for (const [from, name] of moves)
    if (existsSync(from)) await rename(from, join(output, name));
    else if (!existsSync(join(output, name)))
      throw new IntegrityError(
        `${place.folder}: expected ${basename(from)}, it is gone; build again with --restart`,
      );
  await syncFolder(output);
  // Who folds changes into the earlier index writes its manifest, which must not come over this one.
  const earlier = await lockChanges(output, signal);
  try {
    await rename(place.stagedManifest, join(output, MANIFEST_FILE));
  } finally {
    earlier?.close();
  }
  await syncFolder(output);
  await removeStrays(output);
  await rm(place.folder, { recursive: true, force: true });
  return staged;
}
