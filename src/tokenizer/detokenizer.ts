// Token ids to text, one at a time: bytes are held back only while they may still become a character.

import type { TokenBytes } from './token-bytes.js';
import type { Detokenizer } from './tokenizer.js';

const toText = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');

/** Lowest and highest second byte that may follow a lead byte (Unicode, table 3-7). */
function secondByteRange(lead: number): readonly [number, number] {
  if (lead === 0xe0) return [0xa0, 0xbf];
  if (lead === 0xed) return [0x80, 0x9f];
  if (lead === 0xf0) return [0x90, 0xbf];
  if (lead === 0xf4) return [0x80, 0x8f];
  return [0x80, 0xbf];
}

function sequenceLength(lead: number): number {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  return lead >= 0xf0 && lead <= 0xf4 ? 4 : 1;
}

/**
 * How many bytes at the end begin a character that further bytes can complete: 0 to 3. Bytes that can never
 * become a character do not count, so they are not held back.
 */
export function incompleteTail(bytes: Uint8Array): number {
  for (let length = 1; length <= Math.min(3, bytes.length); length++) {
    const lead = bytes[bytes.length - length] as number;
    if (lead >= 0x80 && lead <= 0xbf) continue;
    if (sequenceLength(lead) <= length) return 0;
    const [low, high] = secondByteRange(lead);
    const second = length > 1 ? (bytes[bytes.length - length + 1] as number) : low;
    return second >= low && second <= high ? length : 0;
  }
  return 0;
}

/** Text of UTF-8 bytes; each maximal part that is no character becomes one U+FFFD. A byte order mark stays. */
export const decodeBytes = toText;

/** @param skips ids that give no text */
export function createDetokenizer(
  tokens: Pick<TokenBytes, 'get' | 'dropsFirstSpace'>,
  skips: (id: number) => boolean,
): Detokenizer {
  let held: Uint8Array = new Uint8Array(0);
  let begun = false;
  return {
    push(id) {
      if (skips(id)) return '';
      let bytes = tokens.get(id);
      if (bytes.length === 0) return '';
      if (!begun && tokens.dropsFirstSpace && bytes[0] === 0x20) bytes = bytes.subarray(1);
      begun = true;
      const joined = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
      const end = joined.length - incompleteTail(joined);
      held = joined.slice(end);
      return toText(joined.subarray(0, end));
    },
    flush() {
      const text = toText(held);
      held = new Uint8Array(0);
      return text;
    },
  };
}
