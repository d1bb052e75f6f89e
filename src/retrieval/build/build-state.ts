// What an unfinished build remembers. All of it lies in <output>/building/, which goes when the index is done.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { FileFormatError, InvalidInputError } from '../../errors.js';
import { readJsonFileIfAny, writeJsonFile } from '../../util/json-file.js';
import { type IndexManifest, manifestSchema } from '../folder/manifest.js';

const requestSchema = z.strictObject({
  input: z.string(),
  inputKind: z.string(),
  skipBad: z.boolean(),
  embedderId: z.string(),
  embedderDigest: z.string(),
  dimension: z.number().int(),
  metric: z.enum(['cosine', 'ip']),
  M: z.number().int(),
  efConstruction: z.number().int(),
});

/** What was asked for. A build goes on only for the same request. */
export type BuildRequest = z.infer<typeof requestSchema>;

export interface BuildFolder {
  readonly folder: string;
  readonly requestFile: string;
  readonly passagesFile: string;
  readonly vectorsFile: string;
  readonly graphFile: string;
  /** The finished manifest, while the files it names are being moved to their place. */
  readonly stagedManifest: string;
}

export function buildFolder(output: string): BuildFolder {
  const folder = join(output, 'building');
  return {
    folder,
    requestFile: join(folder, 'request.json'),
    passagesFile: join(folder, 'passages.sqlite'),
    vectorsFile: join(folder, 'vectors.f32'),
    graphFile: join(folder, 'graph.bin'),
    stagedManifest: join(folder, 'manifest.json'),
  };
}

/**
 * Begins a build or takes up the one that was begun for the same request.
 * @param restart  throw away what another request (or this one) left
 * @throws {InvalidInputError} an unfinished build of another request lies there; names what differs
 */
export async function beginBuild(place: BuildFolder, request: BuildRequest, restart: boolean): Promise<void> {
  if (restart) await rm(place.folder, { recursive: true, force: true });
  const earlier = await readRequest(place.requestFile);
  if (earlier === null) {
    await rm(place.folder, { recursive: true, force: true });
    await writeJsonFile(place.requestFile, request);
    return;
  }
  for (const key of Object.keys(request) as (keyof BuildRequest)[])
    if (earlier[key] !== request[key])
      throw new InvalidInputError(
        `${place.folder} holds an unfinished build with ${key} ${String(earlier[key])}, this one has ${String(request[key])}; --restart throws it away`,
      );
}

const readRequest = (path: string): Promise<BuildRequest | null> => readState(path, requestSchema);

export function readStagedManifest(place: BuildFolder): Promise<IndexManifest | null> {
  return readState(place.stagedManifest, manifestSchema);
}

async function readState<Value>(path: string, schema: z.ZodType<Value>): Promise<Value | null> {
  try {
    return await readJsonFileIfAny(path, schema);
  } catch (cause) {
    if (!(cause instanceof FileFormatError)) throw cause;
    throw new FileFormatError(
      `${cause.message}\nThat is not the state of a build of this version; --restart throws it away`,
      { cause },
    );
  }
}
