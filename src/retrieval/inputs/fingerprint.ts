import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';

const SAMPLE_BYTES = 1 << 20;

/**
 * What an input file is, for a build that goes on later: path, size, and a digest of its first and last mebibyte.
 * Not its date: a copy, a mount or a checkout changes that and nothing else.
 */
export async function fileFingerprint(path: string, size: number): Promise<string> {
  return `${path} (${size} bytes, ends ${(await endsDigest(path, size)).slice(0, 16)})`;
}

/** sha256 over the first and the last mebibyte. */
export async function endsDigest(path: string, size: number): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(path);
  try {
    for (const start of new Set([0, Math.max(0, size - SAMPLE_BYTES)])) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(SAMPLE_BYTES, size)), {
        position: start,
      });
      hash.update(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
  return hash.digest('hex');
}
