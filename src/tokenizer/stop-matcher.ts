// Stop strings in a stream of text. Nothing of a stop string, and nothing after it, is ever given out; text is
// held back only while it may still become one.

/**
 * Of several matches the one that starts first counts, and of those that start together the one that ends first:
 * the stream can stop as soon as it is certain, and a longer stop string that begins alike changes nothing.
 */
export interface StopMatcher {
  /** Text that is certain to stand before any stop string, and the stop string once it is found. */
  push(text: string): { readonly safe: string; readonly matched: string | null };
  /**
   * The end of the text: what was held back and belongs to no stop string. It may settle a match that an earlier,
   * still open stop string had kept waiting; `matched` then names it.
   */
  flush(): string;
  /** The stop string that ended the text, if any. */
  readonly matched: string | null;
}

/** A node of an Aho-Corasick automaton over UTF-16 units. */
interface Node {
  readonly next: Map<number, Node>;
  /** Length of the prefix of a stop string that leads here. */
  readonly depth: number;
  /** Node of the longest proper suffix that is also a prefix of a stop string. */
  fallback: Node | null;
  /** The longest stop string that ends here. */
  stop: string | null;
}

const createNode = (depth: number): Node => ({ next: new Map(), depth, fallback: null, stop: null });

function createTrie(stops: readonly string[]): Node {
  const root = createNode(0);
  for (const stop of stops) {
    let node = root;
    for (let i = 0; i < stop.length; i++) {
      const unit = stop.charCodeAt(i);
      const next: Node = node.next.get(unit) ?? createNode(node.depth + 1);
      node.next.set(unit, next);
      node = next;
    }
    node.stop = stop;
  }
  return root;
}

function step(root: Node, from: Node, unit: number): Node {
  let node: Node | null = from;
  while (node !== null) {
    const next = node.next.get(unit);
    if (next !== undefined) return next;
    node = node.fallback;
  }
  return root;
}

function createAutomaton(stops: readonly string[]): Node {
  const root = createTrie(stops);
  const queue: Node[] = [root];
  for (const node of queue)
    for (const [unit, next] of node.next) {
      next.fallback = node === root ? root : step(root, node.fallback as Node, unit);
      next.stop ??= next.fallback.stop;
      queue.push(next);
    }
  return root;
}

/**
 * A matcher for one stream. Each character is looked at once, however alike the stop strings are. Empty stop
 * strings are left out.
 *
 * A match is certain once no stop string that began earlier is still open: the automaton's node then says how far
 * back an open one reaches.
 */
export function createStopMatcher(stops: readonly string[]): StopMatcher {
  const root = createAutomaton(stops.filter((stop) => stop !== ''));
  let node = root;
  let held = '';
  let done = false;
  let matched: string | null = null;
  /** The earliest complete match in `held`; an earlier one may still be open. */
  let candidate: { readonly start: number; readonly stop: string } | null = null;

  const finish = (): { safe: string; matched: string } => {
    const { start, stop } = candidate as { start: number; stop: string };
    const safe = held.slice(0, start);
    held = '';
    done = true;
    matched = stop;
    return { safe, matched: stop };
  };

  const found = (position: number): void => {
    const stop = node.stop;
    if (stop === null) return;
    const start = position - stop.length;
    if (candidate === null || start < candidate.start) candidate = { start, stop };
  };

  return {
    get matched() {
      return matched;
    },
    push(text) {
      if (done) return { safe: '', matched: null };
      const from = held.length;
      held += text;
      for (let i = from; i < held.length; i++) {
        node = step(root, node, held.charCodeAt(i));
        found(i + 1);
        if (candidate !== null && i + 1 - node.depth >= candidate.start) return finish();
      }
      const end = held.length - node.depth;
      const safe = held.slice(0, end);
      held = held.slice(end);
      if (candidate !== null) candidate = { start: candidate.start - end, stop: candidate.stop };
      return { safe, matched: null };
    },
    flush() {
      if (done) return '';
      const rest = candidate === null ? held : finish().safe;
      held = '';
      done = true;
      return rest;
    },
  };
}
