// Messages to the ids of a prompt, at a cost that the window bounds, however long the messages are.

import { ContextLengthError } from '../../errors.js';
import type { ChatMessage, Tokenizer } from '../../tokenizer/index.js';

type PromptTokenizer = Pick<Tokenizer, 'encodeChat' | 'encodePlain' | 'minimumTokens'>;

/** Characters encoded in one go while a long text is counted. */
const PIECE = 4096;
/** Texts up to this length are encoded without a count before. */
const SHORT = 4 * PIECE;
/** A cut may add tokens that the whole text does not have; so many are forgiven for each. */
const SLACK_PER_CUT = 8;

/**
 * Ids of the rendered chat. A prompt that is too long costs no more than one that just fits: its least possible
 * number of tokens is looked at first, then its pieces are counted until there are too many.
 * @param window most tokens of a sequence; one must be left for the answer
 * @throws {ContextLengthError} naming the window and what the prompt has
 */
export function encodePrompt(
  messages: readonly ChatMessage[],
  tokenizer: PromptTokenizer,
  window: number,
): number[] {
  const bytes = messages.reduce((sum, message) => sum + Buffer.byteLength(message.content), 0);
  const atLeast = tokenizer.minimumTokens(bytes);
  if (atLeast >= window) throw tooLong(window, `at least ${atLeast}`);
  if (bytes > SHORT) assertCount(messages, tokenizer, window);
  const ids = tokenizer.encodeChat(messages, { addGenerationPrompt: true });
  if (ids.length >= window) throw tooLong(window, String(ids.length));
  return ids;
}

function assertCount(messages: readonly ChatMessage[], tokenizer: PromptTokenizer, window: number): void {
  let count = messages.length;
  for (const message of messages)
    for (const piece of pieces(message.content)) {
      count += Math.max(0, tokenizer.encodePlain(piece).length - SLACK_PER_CUT);
      if (count > window) throw tooLong(window, `more than ${count}`);
    }
}

function tooLong(window: number, size: string): ContextLengthError {
  return new ContextLengthError(
    `the maximum context length is ${window} tokens and one must be left for the answer, but the prompt has ${size}`,
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
