import { setImmediate } from 'node:timers/promises';

/** Works through a list, one item in a round of the event loop: on a thread that answers requests no list may hold them up. */
export async function mapBreathing<Item, Result>(
  items: readonly Item[],
  work: (item: Item, at: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const [at, item] of items.entries()) {
    results.push(work(item, at));
    await setImmediate();
  }
  return results;
}
