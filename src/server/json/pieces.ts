// JSON of a big value in pieces, so that the thread can turn to others in between.

import { setImmediate as nextTurn } from 'node:timers/promises';

/** Nodes that are written in one go: well under a millisecond. */
const HEAVY = 4096;
/** UTF-16 units of a text that count as one node. */
const TEXT_NODE = 64;
/** Least length of a piece, but for the last. */
const PIECE = 64 * 1024;

/** Whether a value is worth being written in pieces. */
export const isHeavy = (value: unknown): boolean => weightOf(value, HEAVY) >= HEAVY;

/** Joined, the pieces are `JSON.stringify(value)` for plain data: no functions, no `toJSON`. */
export function* jsonPieces(value: unknown): Generator<string, void, void> {
  let text = '';
  for (const part of parts(value)) {
    text += part;
    if (text.length < PIECE) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

/** `JSON.stringify` of a heavy value, with turns for others in between. */
export async function jsonInTurns(value: unknown): Promise<string> {
  let text = '';
  for (const piece of jsonPieces(value)) {
    text += piece;
    await nextTurn();
  }
  return text;
}

function* parts(value: unknown): Generator<string, void, void> {
  if (value === null || typeof value !== 'object' || !isHeavy(value)) yield JSON.stringify(value);
  else if (Array.isArray(value)) yield* arrayParts(value);
  else yield* objectParts(value);
}

function* objectParts(value: object): Generator<string, void, void> {
  let separator = '{';
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue;
    yield `${separator}${JSON.stringify(key)}:`;
    yield* parts(item);
    separator = ',';
  }
  yield separator === '{' ? '{}' : '}';
}

/** Light items go together, heavy ones by themselves. */
function* arrayParts(items: readonly unknown[]): Generator<string, void, void> {
  let separator = '[';
  let batch: unknown[] = [];
  let weight = 0;
  function* flush(): Generator<string, void, void> {
    if (batch.length === 0) return;
    yield separator + JSON.stringify(batch).slice(1, -1);
    separator = ',';
    batch = [];
    weight = 0;
  }
  for (const item of items) {
    const own = weightOf(item, HEAVY);
    if (weight + own >= HEAVY) yield* flush();
    if (own >= HEAVY) {
      yield separator;
      separator = ',';
      yield* parts(item);
    } else {
      batch.push(item);
      weight += own;
    }
  }
  yield* flush();
  yield separator === '[' ? '[]' : ']';
}

/** Number of nodes; counting ends at `enough`. */
function weightOf(value: unknown, enough: number): number {
  if (typeof value === 'string') return 1 + value.length / TEXT_NODE;
  if (value === null || typeof value !== 'object') return 1;
  let weight = 1;
  // No copy of a long array is made to count it.
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    weight += weightOf(item, enough - weight);
    if (weight >= enough) break;
  }
  return weight;
}
