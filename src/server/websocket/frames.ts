// What a client sends over GET /v1/stream: one JSON object a frame.

import { z } from 'zod';
import { attempt, type Parsed } from '../json/attempt.js';
import { type ChatBody, parseChatBody } from '../openai/schema/chat.js';
import { parseFields } from '../openai/schema/fields.js';

export type SocketFrame =
  | {
      readonly type: 'request';
      /** The client's name for the request; on every event that answers it. */
      readonly id: string;
      /** A faulty body is answered under the request's id, so it is no fault of the frame. */
      readonly body: Parsed<ChatBody>;
    }
  | { readonly type: 'cancel'; readonly id: string };

const frameFields = z.object({
  type: z.enum(['request', 'cancel']),
  id: z.string().min(1).max(128),
  body: z.unknown().optional(),
});

/** @throws {RequestError} for a frame that is neither */
export function parseFrame(value: unknown): SocketFrame {
  const { type, id, body } = parseFields(frameFields, value);
  return type === 'cancel' ? { type, id } : { type, id, body: attempt(() => parseChatBody(body)) };
}
