// Which sampled tokens lie inside an information block that the policy wrote itself.

import type { Tokenizer } from '../tokenizer/index.js';
import { createSampledText } from './sampled-text.js';

const BLOCK = /<information>([\s\S]*?)(<\/information>|$)/g;

/**
 * For each token of one sampled turn: does its text begin inside a self-written `<information>` block? The
 * tags' own tokens are outside, so that opening a block is still trained. A block that is never closed runs
 * to the end of the turn.
 *
 * @param ids   token ids of one turn, as sampled
 * @returns     one flag a token
 */
export function insideInformation(ids: readonly number[], tokenizer: Tokenizer): boolean[] {
  const decoder = createSampledText(tokenizer);
  const starts: number[] = [];
  let text = '';
  for (const id of ids) {
    starts.push(text.length);
    text += decoder.push(id);
  }
  text += decoder.flush();
  const inside = new Array<boolean>(ids.length).fill(false);
  for (const match of text.matchAll(BLOCK)) {
    const begin = match.index + '<information>'.length;
    const end = match[2] === '' ? Number.POSITIVE_INFINITY : begin + (match[1] as string).length;
    for (const [index, start] of starts.entries()) if (start >= begin && start < end) inside[index] = true;
  }
  return inside;
}
