/** As many values as one statement takes without asking. */
const CHUNK = 500;

export function* inChunks<T>(items: readonly T[]): Generator<T[], void, void> {
  for (let start = 0; start < items.length; start += CHUNK) yield items.slice(start, start + CHUNK);
}
