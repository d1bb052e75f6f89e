// A prompt that is far too long is refused before anything encodes it whole, in steps that leave the thread
// free for others. What passes here is checked exactly by the rollout.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChatMessage } from '../../tokenizer/index.js';
import type { Policy } from '../context.js';
import { RequestError } from '../openai/request-error.js';

/** Characters encoded in one go: a few milliseconds. */
const PIECE = 4096;
/** Texts up to this length are left to the rollout. */
const SHORT = 4 * PIECE;
/** A cut may add tokens that the whole text does not have; so many are forgiven for each. */
const SLACK_PER_CUT = 8;

/** @throws {RequestError} `context_length_exceeded` */
export async function assertPromptFits(
  messages: readonly ChatMessage[],
  policy: Pick<Policy, 'engine' | 'tokenizer'>,
  signal: AbortSignal,
): Promise<void> {
  const window = policy.engine.info.maxSequenceTokens;
  const { tokenizer } = policy;
  let least = 0;
  for (const message of messages) least += tokenizer.minimumTokens(Buffer.byteLength(message.content));
  if (least > window) throw tooLong(window, `at least ${least}`);

  const characters = messages.reduce((sum, message) => sum + message.content.length, 0);
  if (characters <= SHORT) return;
  let count = 0;
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
