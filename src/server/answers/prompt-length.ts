// A prompt that is far too long is refused before anything encodes it whole, in steps that leave the thread
// free for others. What passes here is checked exactly by the rollout.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Part, Policy } from '../context.js';
import { RequestError } from '../openai/request-error.js';
import type { ChatBody } from '../openai/schema/chat.js';

/** Characters encoded in one go: a few milliseconds. */
const PIECE = 4096;
/** Texts up to this length are left to the rollout. */
const SHORT = 4 * PIECE;
/** No body is as big. */
const MOST_BYTES = 2 ** 31;
/** A cut may add tokens that the whole text does not have; so many are forgiven for each. */
const SLACK_PER_CUT = 8;

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
export async function assertPromptFits(
  { messages, promptBytes }: Pick<ChatBody, 'messages' | 'promptBytes'>,
  policy: Pick<Policy, 'engine' | 'tokenizer'>,
  signal: AbortSignal,
): Promise<void> {
  const window = policy.engine.info.maxSequenceTokens;
  const { tokenizer } = policy;
  // Every message brings at least one token of its own: its role, or the mark of its end.
  const least = tokenizer.minimumTokens(promptBytes) + messages.length;
  if (least > window) throw tooLong(window, `at least ${least}`);

  const characters = messages.reduce((sum, message) => sum + message.content.length, 0);
  if (characters <= SHORT) return;
  let count = messages.length;
  for (const message of messages)
    for (const piece of pieces(message.content)) {
      count += Math.max(0, tokenizer.encodePlain(piece).length - SLACK_PER_CUT);
      if (count > window) throw tooLong(window, `more than ${count}`);
      await nextTurn();
      signal.throwIfAborted();
    }
}

function tooLong(window: number, size: string): RequestError {
  return new RequestError(
    'context_length_exceeded',
    `This model's maximum context length is ${window} tokens; the messages have ${size}`,
    'messages',
  );
}

/** Cuts before a space where there is one, never inside a character. */
export function* pieces(text: string): Generator<string, void, void> {
  let start = 0;
  while (text.length - start > PIECE) {
    const space = text.lastIndexOf(' ', start + PIECE);
    let end = space > start ? space : start + PIECE;
    if (/[\uDC00-\uDFFF]/.test(text.charAt(end))) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
  if (start < text.length) yield text.slice(start);
}
