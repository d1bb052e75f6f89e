// The one page that makes a folder an index. It is written last and read first: files that it does not name
// are not part of the index, and files that are not as it says are refused.

import { join } from 'node:path';
import { z } from 'zod';
import { IntegrityError, NotFoundError, UnsupportedError } from '../../errors.js';
import { writeFileAtomic } from '../../util/atomic-file.js';
import { checkJson, jsonObject, readJsonFileIfAny } from '../../util/json-file.js';
import type { EmbedderInfo } from '../embedder/embedder.js';

export const FORMAT_VERSION = 1;
export const MANIFEST_FILE = 'manifest.json';

const digest = z.string().regex(/^[0-9a-f]{64}$/, 'expected 64 hexadecimal digits');
const count = z.number().int().min(0);
const fileName = z.string().regex(/^[\w-]+\.[a-z]+$/, 'expected a plain file name');

export const manifestSchema = z.strictObject({
  formatVersion: z.literal(FORMAT_VERSION),
  name: z.string().min(1),
  createdAt: z.iso.datetime(),
  /** What was built from; sha256 for single files of moderate size. */
  source: z.strictObject({
    kind: z.string().min(1),
    name: z.string(),
    bytes: count,
    sha256: digest.nullable(),
    skippedEntries: count,
    duplicateEntries: count,
  }),
  embedder: z.strictObject({ id: z.string().min(1), digest, dimension: z.number().int().min(1) }),
  passages: z.strictObject({
    file: fileName,
    count,
    /** Of the passages as built; later changes are named by the snapshot id only. */
    contentDigest: digest,
  }),
  graph: z.strictObject({
    file: fileName,
    bytes: count,
    sha256: digest,
    count,
    dimension: z.number().int().min(1),
    metric: z.enum(['cosine', 'ip']),
    M: z.number().int().min(2),
    efConstruction: z.number().int().min(1),
  }),
  /** Number of the last change that the graph file holds. */
  revision: count,
  snapshotId: digest,
});

export type IndexManifest = z.infer<typeof manifestSchema>;

/**
 * @throws {NotFoundError} the folder holds no index
 * @throws {UnsupportedError} the index is of another format version
 * @throws {FileFormatError} the manifest is not valid; each wrong or unknown key is named
 */
export async function readManifest(folder: string): Promise<IndexManifest> {
  const path = join(folder, MANIFEST_FILE);
  const value = await readJsonFileIfAny(path, jsonObject);
  if (value === null)
    throw new NotFoundError(
      `${folder} holds no index (no ${MANIFEST_FILE}); "searchloop index build" makes one`,
    );
  const version = value.formatVersion;
  if (typeof version === 'number' && version !== FORMAT_VERSION)
    throw new UnsupportedError(
      `${path}: expected format version ${FORMAT_VERSION}, came ${version}; build it again`,
    );
  return checkJson(value, manifestSchema, path);
}

export function formatManifest(manifest: IndexManifest): string {
  return `${JSON.stringify(manifestSchema.parse(manifest), null, 2)}\n`;
}

export async function writeManifest(folder: string, manifest: IndexManifest): Promise<void> {
  await writeFileAtomic(join(folder, MANIFEST_FILE), formatManifest(manifest));
}

/**
 * Refuses an embedder other than the one that made the vectors.
 * @throws {IntegrityError} with both values
 */
export function checkEmbedder(manifest: IndexManifest, embedder: EmbedderInfo): void {
  const mismatch = (what: string, expected: string | number, actual: string | number): never => {
    throw new IntegrityError(
      `index "${manifest.name}" was built with embedder ${what} ${expected}, the configured embedder has ${actual}`,
      { details: { expected, actual } },
    );
  };
  if (manifest.embedder.dimension !== embedder.dimension)
    mismatch('dimension', manifest.embedder.dimension, embedder.dimension);
  if (manifest.embedder.digest !== embedder.digest)
    mismatch(
      'digest',
      `${manifest.embedder.digest} ("${manifest.embedder.id}")`,
      `${embedder.digest} ("${embedder.id}")`,
    );
}

/**
 * Refuses a manifest whose parts contradict each other.
 * @throws {IntegrityError} with both values
 */
export function checkConsistency(manifest: IndexManifest): void {
  const { embedder, graph, passages } = manifest;
  if (graph.dimension !== embedder.dimension)
    throw new IntegrityError(
      `index "${manifest.name}": the graph has dimension ${graph.dimension}, its embedder ${embedder.dimension}`,
    );
  if (graph.count !== passages.count)
    throw new IntegrityError(
      `index "${manifest.name}": the graph has ${graph.count} vectors for ${passages.count} passages`,
    );
}
