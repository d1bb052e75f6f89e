// The body of POST /v1/chat/completions. Unknown fields are dropped; null is absent; what changes the answer
// and is not served is refused, never ignored.

import { z } from 'zod';
import type { ChatMessage } from '../../../tokenizer/index.js';
import { wellFormed } from '../../../util/well-formed.js';
import { invalidField, unsupportedField } from '../request-error.js';
import { optional, parseFields, show } from './fields.js';
import { parseMessages } from './messages.js';

/** Bounds of lists, so that one body cannot hold the thread. */
const MOST_MESSAGES = 10_000;
const MOST_STOPS = 16;
const LONGEST_STOP = 1024;
const MOST_BIASES = 1024;
const MOST_STOP_IDS = 64;
const LARGEST_SEED = 2 ** 63;
/** The engine's; the thread that parses does without that room. */
const LEAST_REPETITION_PENALTY = 0.01;

const count = z.number().int().min(1);
const tokenId = z.number().int().min(0);

const stop = z
  .unknown()
  .optional()
  .transform((value, context): readonly string[] | undefined => {
    if (value === null || value === undefined) return undefined;
    const fail = (message: string): undefined => void context.addIssue({ code: 'custom', message });
    const texts = typeof value === 'string' ? [value] : value;
    if (!Array.isArray(texts)) return fail('expected a string or an array of strings');
    if (texts.length > MOST_STOPS) return fail(`expected at most ${MOST_STOPS} strings`);
    if (!texts.every((text) => typeof text === 'string' && text !== '' && text.length <= LONGEST_STOP))
      return fail(`expected non-empty strings of at most ${LONGEST_STOP} characters`);
    return texts.length > 0 ? texts.map(wellFormed) : undefined;
  });

const logitBias = z
  .unknown()
  .optional()
  .transform((value, context): Readonly<Record<number, number>> => {
    if (value === null || value === undefined) return {};
    const fail = (message: string): Record<number, number> => {
      context.addIssue({ code: 'custom', message });
      return {};
    };
    if (typeof value !== 'object' || Array.isArray(value)) return fail('expected an object');
    const entries = Object.entries(value);
    if (entries.length > MOST_BIASES) return fail(`expected at most ${MOST_BIASES} tokens`);
    const legal = entries.every(
      ([id, bias]) => /^\d{1,10}$/.test(id) && typeof bias === 'number' && Math.abs(bias) <= 100,
    );
    return legal ? Object.fromEntries(entries) : fail('expected token ids with numbers from -100 to 100');
  });

const seed = z
  .number()
  .refine((value) => Number.isInteger(value) && Math.abs(value) <= LARGEST_SEED, 'expected a 64-bit integer');

/** Sets of questions name all aliases of an answer, more than a hundred at times. */
const MOST_GOLDS = 512;
const LONGEST_GOLD = 4096;
const LONGEST_GOLDS = 64 * LONGEST_GOLD;

/** Gold answers of a question, as chat requests and feedback give them. */
export const goldAnswers = z
  .array(z.string().min(1).max(LONGEST_GOLD).transform(wellFormed))
  .min(1)
  .max(MOST_GOLDS)
  .refine(
    (golds) => golds.reduce((sum, { length }) => sum + length, 0) <= LONGEST_GOLDS,
    `expected at most ${LONGEST_GOLDS} characters in all`,
  );

/** Names a person; clients send what they like, so what is no name is ignored. */
const person = z
  .unknown()
  .optional()
  .transform((value) =>
    typeof value === 'string' && value !== '' ? wellFormed(value.slice(0, 512)) : undefined,
  );

const extras = z.strictObject({
  top_k: optional(z.number().int().min(1).max(100)).describe('Passages of a search.'),
  action_budget: optional(z.number().int().min(1).max(64)).describe(
    'Turns that may act before the last one.',
  ),
  golden_answers: optional(goldAnswers).describe(
    'Right answers, known beforehand; needs the scope feedback.',
  ),
  force_answer: optional(z.boolean()).describe('Open the answer when the budget ends without one.'),
});

const chatFields = z.object({
  model: z.string().min(1).max(256),
  messages: z.array(z.unknown()).min(1).max(MOST_MESSAGES),
  max_tokens: optional(count),
  max_completion_tokens: optional(count),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().min(0).max(1)),
  frequency_penalty: optional(z.number().min(-2).max(2)),
  presence_penalty: optional(z.number().min(-2).max(2)),
  stop,
  seed: optional(seed),
  n: optional(count.max(128)),
  logit_bias: logitBias,
  logprobs: optional(z.boolean()),
  top_logprobs: optional(z.number().int().min(0).max(20)),
  stream: optional(z.boolean()),
  stream_options: optional(z.object({ include_usage: optional(z.boolean()) })),
  reasoning_effort: optional(z.string()),
  store: optional(z.boolean()),
  user: person,
  safety_identifier: person,
  /** What users of vLLM send. */
  top_k: optional(z.number().int().min(-1)),
  min_p: optional(z.number().min(0).max(1)),
  repetition_penalty: optional(z.number().min(LEAST_REPETITION_PENALTY).max(2)),
  stop_token_ids: optional(z.array(tokenId).max(MOST_STOP_IDS)),
  ignore_eos: optional(z.boolean()),
  return_token_ids: optional(z.boolean()),
  searchloop: optional(extras),
});

export type ChatBody = Omit<z.output<typeof chatFields>, 'messages'> & {
  readonly messages: readonly ChatMessage[];
  /** UTF-8 bytes of all messages. */
  readonly promptBytes: number;
};

/** @throws {RequestError} naming the first field that is wrong or not supported */
export function parseChatBody(value: unknown): ChatBody {
  const fields = parseFields(chatFields, value);
  const raw = value as Readonly<Record<string, unknown>>;
  if ((fields.top_logprobs ?? 0) > 0 && !fields.logprobs)
    throw invalidField('top_logprobs', 'top_logprobs: expected logprobs to be true beside it');
  refuseTools(raw);
  refuseFormat(raw['response_format']);
  refuseOther(raw);
  const messages = parseMessages(fields.messages);
  const promptBytes = messages.reduce((sum, message) => sum + Buffer.byteLength(message.content), 0);
  return { ...fields, messages, promptBytes };
}

const isFilled = (value: unknown): boolean =>
  value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0);

function refuseTools(raw: Readonly<Record<string, unknown>>): void {
  for (const [list, choice] of [
    ['tools', 'tool_choice'],
    ['functions', 'function_call'],
  ] as const) {
    const tools = raw[list];
    if (isFilled(tools) && !Array.isArray(tools))
      throw invalidField(list, `${list}: expected an array, received ${show(tools)}`);
    const wanted = raw[choice] ?? undefined;
    if (wanted === 'none') continue;
    if (isFilled(tools))
      throw unsupportedField(
        list,
        `${list}: calling tools is not supported; send ${choice} "none" or leave it out`,
      );
    if (wanted !== undefined && wanted !== 'auto')
      throw unsupportedField(choice, `${choice}: expected "none" or "auto", received ${show(wanted)}`);
  }
}

function refuseFormat(format: unknown): void {
  if (format === null || format === undefined) return;
  if (typeof format !== 'object' || Array.isArray(format))
    throw invalidField('response_format', `response_format: expected an object, received ${show(format)}`);
  const { type, json_schema: schema } = format as { type?: unknown; json_schema?: unknown };
  if (type === 'text') return;
  if (type === 'json_schema' && (schema === null || typeof schema !== 'object' || Array.isArray(schema)))
    throw invalidField(
      'response_format.json_schema',
      `response_format.json_schema: expected an object, received ${show(schema)}`,
    );
  if (type === 'json_schema' || type === 'json_object')
    throw unsupportedField(
      'response_format',
      `response_format: only "text" is supported, received ${show(type)}`,
    );
  throw invalidField('response_format.type', `response_format.type: expected "text", received ${show(type)}`);
}

/** Other fields that would change the answer. */
const REFUSED = [
  'prompt_logprobs',
  'guided_json',
  'guided_regex',
  'guided_choice',
  'guided_grammar',
  'structured_outputs',
  'use_beam_search',
  'audio',
];

function refuseOther(raw: Readonly<Record<string, unknown>>): void {
  for (const name of REFUSED)
    if (isFilled(raw[name]) && raw[name] !== false)
      throw unsupportedField(name, `${name}: not supported by this server`);
  const modalities = raw['modalities'];
  if (Array.isArray(modalities) && modalities.some((item) => item !== 'text'))
    throw unsupportedField('modalities', 'modalities: only "text" is supported');
}
