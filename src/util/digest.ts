import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';

/** sha256 in lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** sha256 of a file in lower-case hex, streamed. `onBytes` hears how many bytes were read so far. */
export async function sha256File(path: string, onBytes?: (total: number) => void): Promise<string> {
  const hash = createHash('sha256');
  let total = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    hash.update(chunk as Buffer);
    total += (chunk as Buffer).length;
    onBytes?.(total);
  }
  return hash.digest('hex');
}

/** JSON with sorted keys: equal values give equal text, so digests of settings are stable. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    item !== null && typeof item === 'object' && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : item,
  );
}
