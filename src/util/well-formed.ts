/** Lone surrogates become U+FFFD: no encoder downstream can take half a character. */
export function wellFormed(text: string): string {
  // In Node.js since 20; the typings of ES2023 do not have it.
  return (text as string & { toWellFormed(): string }).toWellFormed();
}
