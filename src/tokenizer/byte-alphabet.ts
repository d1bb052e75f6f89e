// GPT-2's alphabet: each byte is written as one printable character, so that byte sequences can stand in a
// JSON vocabulary. Printable Latin-1 bytes stand for themselves, the other 68 take U+0100 upwards in order.

const printable = (byte: number): boolean =>
  (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);

/** The character for each byte, index = byte. */
export const BYTE_CHARACTERS: readonly string[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
})();

const BYTES = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));

/** The bytes that a vocabulary entry stands for; null when one of its characters stands for no byte. */
export function bytesOfToken(token: string): Uint8Array | null {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = BYTES.get(token[i] as string);
    if (byte === undefined) return null;
    bytes[i] = byte;
  }
  return bytes;
}
