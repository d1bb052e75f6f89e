// The text of sampled tokens as the protocol reads it: control tokens stand for nothing, except where a
// vocabulary has a protocol tag as one token.

import type { Tokenizer } from '../tokenizer/index.js';

export const PROTOCOL_TAGS = [
  '<think>',
  '</think>',
  '<search>',
  '</search>',
  '<information>',
  '</information>',
  '<answer>',
  '</answer>',
] as const;

export type ProtocolTag = (typeof PROTOCOL_TAGS)[number];

export interface SampledText {
  /** Text that this token completes; never half a character. '' for a control token. */
  push(id: number): string;
  /** What is held back. */
  flush(): string;
}

export function createSampledText(tokenizer: Tokenizer): SampledText {
  const detokenizer = tokenizer.createDetokenizer();
  const isRead = readableIds(tokenizer);
  return {
    push: (id) => (isRead(id) ? detokenizer.push(id) : ''),
    flush: () => detokenizer.flush(),
  };
}

function readableIds({ addedTokens, specialIds }: Tokenizer): (id: number) => boolean {
  const tags = new Set(PROTOCOL_TAGS.map((tag) => addedTokens.get(tag)));
  return (id) => !specialIds.has(id) || tags.has(id);
}

/** Text of one turn: what its tokens give one after the other, at a tenth of the cost. */
export const sampledText = (ids: readonly number[], tokenizer: Tokenizer): string =>
  tokenizer.decode(ids.filter(readableIds(tokenizer)));
