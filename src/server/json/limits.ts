// How much structure a body may have. JSON.parse of a few megabytes of brackets takes seconds; of text, milliseconds.

import { RequestError } from '../openai/request-error.js';

const DEEPEST = 64;
const MOST_VALUES = 250_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

/**
 * One pass over the bytes of a JSON text, strings skipped.
 * @throws {RequestError} 400 when it nests deeper than 64 levels or holds more than 250,000 values
 */
export function assertSimple(bytes: Uint8Array): void {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) at = endOfString(bytes, at + 1);
    else if (byte === COMMA || byte === COLON) values += 1;
    // { and [ share all bits but one, and so do } and ].
    else if ((byte & 0xdf) === 0x5b) depth += 1;
    else if ((byte & 0xdf) === 0x5d) depth -= 1;
    if (depth > DEEPEST) throw new RequestError('invalid_json', `expected at most ${DEEPEST} nested levels`);
    if (values > MOST_VALUES)
      throw new RequestError('invalid_json', `expected at most ${MOST_VALUES} values`);
  }
}

/** Index of the closing quote, or of the end. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
