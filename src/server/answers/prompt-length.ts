// A prompt that is too long for sure is refused by its length alone. What passes here is checked exactly by the rollout.

import type { Part, Policy } from '../context.js';
import { RequestError } from '../openai/request-error.js';
import type { ChatBody } from '../openai/schema/chat.js';

/** No body is as big. */
const MOST_BYTES = 2 ** 31;
/**
 * UTF-8 bytes beyond which the window is exceeded for sure, to a factor of two.
 * @returns Infinity where no bound is known
 */
export function maxPromptBytes(part: Part<Pick<Policy, 'engine' | 'tokenizer'>>): number {
  if (part.state !== 'ready') return Number.POSITIVE_INFINITY;
  const { engine, tokenizer } = part.value;
  let bytes = engine.info.maxSequenceTokens;
  while (tokenizer.minimumTokens(bytes) <= engine.info.maxSequenceTokens) {
    bytes *= 2;
    if (bytes > MOST_BYTES) return Number.POSITIVE_INFINITY;
  }
  return bytes;
}

/** @throws {RequestError} `context_length_exceeded` */
export function assertPromptFits(
  { messages, promptBytes }: Pick<ChatBody, 'messages' | 'promptBytes'>,
  { engine, tokenizer }: Pick<Policy, 'engine' | 'tokenizer'>,
): void {
  const window = engine.info.maxSequenceTokens;
  // Every message brings at least one token of its own: its role, or the mark of its end.
  const least = tokenizer.minimumTokens(promptBytes) + messages.length;
  if (least > window)
    throw new RequestError(
      'context_length_exceeded',
      `This model's maximum context length is ${window} tokens; the messages have at least ${least}`,
      'messages',
    );
}
