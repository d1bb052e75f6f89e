// From bytes to a checked body: the same function on the HTTP thread (small bodies) and in the worker.

import { type FeedbackBody, parseFeedbackBody } from '../feedback/schema.js';
import { RequestError } from '../openai/request-error.js';
import { type ChatBody, parseChatBody } from '../openai/schema/chat.js';
import { parseRetrieveBody, type RetrieveBody, type RetrieveLimits } from '../retrieve/schema.js';
import { parseFrame, type SocketFrame } from '../websocket/frames.js';
import { attempt, type Parsed } from './attempt.js';
import { assertSimple } from './limits.js';

/** What each kind of body becomes. */
export interface Bodies {
  readonly chat: ChatBody;
  readonly feedback: FeedbackBody;
  readonly retrieve: RetrieveBody;
  readonly frame: SocketFrame;
}

export type BodyKind = keyof Bodies;

export interface ParseSettings {
  readonly retrieve: RetrieveLimits;
}

/** Checks and parses; faults of the input are values, other errors are thrown. */
export function parseBytes<K extends BodyKind>(
  kind: K,
  bytes: Uint8Array,
  settings: ParseSettings,
): Parsed<Bodies[K]> {
  return attempt(() => {
    const value = parseJson(bytes);
    const parse = {
      chat: () => parseChatBody(value),
      feedback: () => parseFeedbackBody(value),
      retrieve: () => parseRetrieveBody(value, settings.retrieve),
      frame: () => parseFrame(value),
    };
    return parse[kind]() as Bodies[K];
  });
}

function parseJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) throw new RequestError('invalid_json', 'expected a JSON object, the body is empty');
  assertSimple(bytes);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new RequestError('invalid_json', 'expected JSON in UTF-8, the bytes are not valid UTF-8');
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RequestError('invalid_json', `expected valid JSON: ${positionOf(error as Error)}`);
  }
}

/** V8's message quotes the text around the fault; only the place is told. */
function positionOf(error: Error): string {
  return error.message.match(/at position \d+/)?.[0] ?? 'it ends too early or is not JSON';
}
