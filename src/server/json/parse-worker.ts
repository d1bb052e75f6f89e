// Worker entry: parses big bodies, so that the HTTP thread goes on.

import { type Method, serveWorker } from '../../runtime/index.js';
import type { ChatBody } from '../openai/schema/chat.js';
import type { Parsed } from './attempt.js';
import { type Bodies, type BodyKind, type ParseSettings, parseBytes } from './parse.js';

export interface ParseCall {
  readonly kind: BodyKind;
  readonly bytes: Uint8Array;
  /** Messages with more bytes stay here: they will be refused by their length alone. */
  readonly maxPromptBytes: number;
}

export interface ParseMethods {
  readonly parse: Method<ParseCall, Parsed<Bodies[BodyKind]>>;
}

serveWorker<ParseMethods, ParseSettings>((settings) => ({
  methods: {
    parse: ({ kind, bytes, maxPromptBytes }) => {
      const parsed = parseBytes(kind, bytes, settings);
      return parsed.ok ? { ok: true, value: withoutLongPrompt(parsed.value, maxPromptBytes) } : parsed;
    },
  },
}));

/** Copying megabytes to the HTTP thread would hold it. */
function withoutLongPrompt(value: Bodies[BodyKind], maxPromptBytes: number): Bodies[BodyKind] {
  if ('promptBytes' in value) return value.promptBytes > maxPromptBytes ? { ...value, messages: [] } : value;
  if (!('body' in value) || !value.body.ok) return value;
  const body = withoutLongPrompt(value.body.value, maxPromptBytes) as ChatBody;
  return { ...value, body: { ok: true, value: body } };
}
