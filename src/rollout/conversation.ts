// The messages that the chat template gets (protocol, section 1, rule 10): system text and earlier turns as
// they are, the question inside the method's instruction as the last user turn.

import { InvalidInputError } from '../errors.js';
import type { ChatMessage } from '../tokenizer/index.js';
import { extractAnswer, trimSpace } from '../trajectory/index.js';

const THINK_BLOCK = /<think>[\s\S]*?(?:<\/think>|$)/g;

function lastUserIndex(messages: readonly ChatMessage[]): number {
  const index = messages.findLastIndex((message) => message.role === 'user');
  if (index < 0)
    throw new InvalidInputError(
      `expected at least one message of role "user", got ${messages.length} messages without one`,
      'messages',
    );
  return index;
}

/**
 * The question: content of the last user message.
 * @throws {InvalidInputError} there is none
 */
export const questionOf = (messages: readonly ChatMessage[]): string =>
  (messages[lastUserIndex(messages)] as ChatMessage).content;

/**
 * Messages with the last user turn rewritten and earlier answers without their reasoning.
 * @param instruct  question to last user turn; absent leaves it as it is
 * @throws {InvalidInputError} there is no user message, or nothing in it that could be instructed upon
 */
export function promptMessages(
  messages: readonly ChatMessage[],
  instruct?: (question: string) => string,
): ChatMessage[] {
  const last = lastUserIndex(messages);
  const question = (messages[last] as ChatMessage).content;
  if (instruct !== undefined && trimSpace(question) === '')
    throw new InvalidInputError(
      'expected a question in the last message of role "user", got nothing but white space',
      'messages',
    );
  return messages.map((message, index) => {
    if (index === last) return { ...message, content: instruct?.(question) ?? question };
    if (message.role === 'assistant') return { ...message, content: withoutReasoning(message.content) };
    return message;
  });
}

/** A whole transcript becomes its answer; otherwise think blocks go. */
function withoutReasoning(content: string): string {
  const answer = extractAnswer(content);
  if (answer !== null) return answer;
  return content.includes('<think>') ? trimSpace(content.replace(THINK_BLOCK, '')) : content;
}
