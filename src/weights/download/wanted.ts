// What a download must yield: a file with its size and sum, whatever source it comes from.

import { createHash, type Hash } from 'node:crypto';
import { IntegrityError } from '../../errors.js';

/**
 * Sum by which a file is known beforehand. Manifests give sha256. The hub lists sha256 for large files and the
 * git object id (sha1 over a prefix and the bytes) for small ones. Mirrors of Wikimedia's dumps list sha1.
 */
export type ExpectedSum =
  | { readonly algorithm: 'sha256'; readonly hex: string }
  | { readonly algorithm: 'sha1'; readonly hex: string }
  | { readonly algorithm: 'git-sha1'; readonly hex: string };

export interface WantedFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly sum: ExpectedSum;
}

export function startSum({ sizeBytes, sum }: WantedFile): Hash {
  if (sum.algorithm !== 'git-sha1') return createHash(sum.algorithm);
  return createHash('sha1').update(`blob ${sizeBytes}\0`);
}

/** @throws {IntegrityError} with both values */
export function checkSum(wanted: WantedFile, hex: string, source: string): void {
  if (hex === wanted.sum.hex) return;
  throw new IntegrityError(
    `${wanted.path} from ${source}: wrong ${wanted.sum.algorithm}, expected ${wanted.sum.hex}, got ${hex}`,
  );
}
