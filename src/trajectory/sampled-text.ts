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
  const readable = new Set(PROTOCOL_TAGS.map((tag) => tokenizer.addedTokens.get(tag)));
  return {
    push: (id) => (tokenizer.specialIds.has(id) && !readable.has(id) ? '' : detokenizer.push(id)),
    flush: () => detokenizer.flush(),
  };
}

/** Text of one turn. */
export function sampledText(ids: readonly number[], tokenizer: Tokenizer): string {
  const text = createSampledText(tokenizer);
  return ids.map((id) => text.push(id)).join('') + text.flush();
}
