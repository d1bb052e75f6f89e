// Messages of a chat body. Each is checked in turn and the first fault ends the walk, so that a body with
// many faults costs no more than one with a single fault.

import { z } from 'zod';
import type { ChatMessage } from '../../../tokenizer/index.js';
import { wellFormed } from '../../../util/well-formed.js';
import { invalidField, type RequestError, unsupportedField } from '../request-error.js';
import { optional, parseFields, pathText, show } from './fields.js';

const ROLES = ['developer', 'system', 'user', 'assistant', 'tool', 'function'] as const;
type WireRole = (typeof ROLES)[number];

/** Part types that the API has and a text model cannot read. */
const MEDIA_PARTS = ['image_url', 'input_audio', 'file', 'video_url', 'input_image', 'input_file'];

const toolCall = z.object({
  id: z.string(),
  type: optional(z.string()),
  function: optional(z.object({ name: z.string(), arguments: z.string() })),
});

const messageSchema = z.object({
  role: z.enum(ROLES),
  content: z.unknown().optional(),
  name: optional(z.string()),
  tool_call_id: optional(z.string()),
  tool_calls: optional(z.array(toolCall).max(128)),
  function_call: optional(z.object({ name: z.string(), arguments: z.string() })),
  refusal: optional(z.string()),
});

type WireMessage = z.output<typeof messageSchema>;

/**
 * Wire messages to chat messages. developer counts as system; system texts are merged, in order, into one at
 * the front, for templates know one system message and know it first. Reasoning that a client sends back
 * in an assistant message is dropped.
 * @throws {RequestError} naming `messages[i]` and the field
 */
export function parseMessages(values: readonly unknown[]): ChatMessage[] {
  const system: string[] = [];
  const turns: ChatMessage[] = [];
  values.forEach((value, index) => {
    const at = `messages[${index}]`;
    const message = parseFields(messageSchema, value, at);
    const content = contentText(message, at);
    if (message.role === 'system' || message.role === 'developer') system.push(content);
    else turns.push({ role: message.role === 'function' ? 'tool' : message.role, content });
  });
  if (!turns.some((turn) => turn.role === 'user'))
    throw invalidField('messages', 'messages: expected at least one message with role "user"');
  return system.length > 0 ? [{ role: 'system', content: system.join('\n\n') }, ...turns] : turns;
}

function contentText(message: WireMessage, at: string): string {
  const { role, content } = message;
  if (role === 'tool' && message.tool_call_id === undefined)
    throw invalidField(`${at}.tool_call_id`, `${at}.tool_call_id: expected a string for role "tool"`);
  if (role === 'function' && message.name === undefined)
    throw invalidField(`${at}.name`, `${at}.name: expected a string for role "function"`);
  if (content === null || content === undefined) return textWithoutContent(message, at);
  const own = typeof content === 'string' ? wellFormed(content) : joinParts(content, role, at);
  return [own, ...callTexts(message)].filter((text) => text !== '').join('\n');
}

/** Null content is legal where something else stands in its place. */
function textWithoutContent(message: WireMessage, at: string): string {
  const { role, refusal } = message;
  const calls = callTexts(message);
  if (role === 'function') return '';
  if (role === 'assistant' && (calls.length > 0 || refusal !== undefined))
    return [...(refusal === undefined ? [] : [wellFormed(refusal)]), ...calls].join('\n');
  throw invalidField(
    `${at}.content`,
    `${at}.content: expected a string or an array of parts, received nothing`,
  );
}

/** Calls of earlier turns as text: the model has to know what a tool message answers. */
function callTexts(message: WireMessage): string[] {
  const calls = [...(message.tool_calls ?? []).map((call) => call.function), message.function_call];
  return calls
    .filter((call) => call !== undefined)
    .map((call) => wellFormed(`Called ${call.name} with ${call.arguments}`));
}

function joinParts(content: unknown, role: WireRole, at: string): string {
  if (!Array.isArray(content) || content.length === 0)
    throw invalidField(
      `${at}.content`,
      `${at}.content: expected a string or a non-empty array of parts, received ${show(content)}`,
    );
  return content.map((part, index) => partText(part, role, `${at}.content[${index}]`)).join('');
}

function partText(part: unknown, role: WireRole, at: string): string {
  if (typeof part === 'string') return wellFormed(part);
  if (part === null || typeof part !== 'object')
    throw invalidField(
      at,
      `${at}: expected a part such as {"type":"text","text":...}, received ${show(part)}`,
    );
  const { type } = part as { type?: unknown };
  if (type === 'text') return stringField(part, 'text', at);
  if (type === 'refusal' && role === 'assistant') return stringField(part, 'refusal', at);
  throw partTypeFault(type, at);
}

function stringField(part: object, key: string, at: string): string {
  const value = (part as Record<string, unknown>)[key];
  if (typeof value === 'string') return wellFormed(value);
  const param = pathText(at, [key]);
  throw invalidField(param, `${param}: expected a string, received ${show(value)}`);
}

function partTypeFault(type: unknown, at: string): RequestError {
  const param = `${at}.type`;
  return MEDIA_PARTS.includes(type as string)
    ? unsupportedField(param, `${param}: this model reads text only, received ${show(type)}`)
    : invalidField(param, `${param}: expected "text", received ${show(type)}`);
}
