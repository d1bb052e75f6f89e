// Finds the protocol's tags in text that arrives in pieces. Text that may still become a tag is held back,
// so no part of a tag is ever shown and the cut into tokens never matters.

import type { ProtocolTag } from '../trajectory/index.js';
import { createRunQueue, type TokenRun } from './token-runs.js';

export type Scanned =
  | { readonly kind: 'text'; readonly run: TokenRun }
  | { readonly kind: 'tag'; readonly tag: ProtocolTag };

export interface TagScanner {
  push(run: TokenRun): Scanned[];
  /** What is held back: text that never became a tag. */
  flush(): TokenRun[];
}

/** @param tags the tags to find; a tag that is not among them is plain text */
export function createTagScanner(tags: readonly ProtocolTag[]): TagScanner {
  const queue = createRunQueue();
  const text = (length: number): Scanned[] => queue.take(length).map((run) => ({ kind: 'text', run }));
  return {
    push(run) {
      queue.push(run);
      const found: Scanned[] = [];
      for (;;) {
        const at = queue.text.indexOf('<');
        if (at < 0) return [...found, ...text(queue.text.length)];
        found.push(...text(at));
        const tag = tags.find((name) => queue.text.startsWith(name));
        if (tag !== undefined) {
          queue.take(tag.length);
          found.push({ kind: 'tag', tag });
          continue;
        }
        if (tags.some((name) => name.startsWith(queue.text))) return found;
        found.push(...text(1));
      }
    },
    flush: () => queue.take(queue.text.length),
  };
}
