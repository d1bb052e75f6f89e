// Close codes and reasons of GET /v1/stream.

/** 10xx are the protocol's own; 44xx are ours. */
export const CLOSE = { goingAway: 1001, tooManyFaults: 1008, keyRefused: 4401, slowReader: 4408 } as const;

/** A close frame has room for 125 bytes, two of them for the code. */
const LONGEST_REASON = 123;

/** Cuts a reason to what a close frame can carry, on a character border. */
export function closeReason(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= LONGEST_REASON) return bytes.toString();
  let end = LONGEST_REASON;
  while ((bytes[end]! & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}
