// A stored answer as one line of JSON. Aligned arrays under the names that trainers in Python use, all else in one
// text field, so that readers which want the same types in every line are content. Reading it gives all back.

import { z } from 'zod';
import { InvalidInputError } from '../../errors.js';
import {
  type TokenOrigin,
  type TrajectoryRecord,
  tokenOriginSchema,
  trajectoryRecordSchema,
} from '../record.js';
import { type Label, labelOf } from '../store/label.js';
import type { FeedbackEntry, Grade, RecordNotes, StoredMessage, StoredTrajectory } from '../store/types.js';

/** The fields of a line. Arrays without a remark have one entry for each token of the sequence. */
export interface ExportLine {
  readonly id: string;
  readonly question: string;
  /** The conversation before the answer. */
  readonly messages: readonly StoredMessage[];
  readonly answer: string | null;
  /** How good the answer is, by whoever has most to say; null where nobody can tell, or only that it beats another one. */
  readonly reward: number | null;
  /** Whose word `reward` is: `feedback`, `gold`, `judge`, `majority`; null with it. */
  readonly reward_source: string | null;
  readonly golden_answers: readonly string[];
  readonly input_ids: readonly number[];
  /** 1 where the policy sampled: the loss belongs there and nowhere else. */
  readonly completion_mask: readonly (0 | 1)[];
  /** Nats under the raw policy; 0 where nothing was sampled. */
  readonly logprobs: readonly number[];
  /** Nats under the distribution that was sampled from. */
  readonly sampling_logprobs: readonly number[];
  /** Leading tokens that are the prompt. */
  readonly prompt_length: number;
  readonly adapter_version: string;
  /** JSON of the rest. */
  readonly searchloop: string;
}

/** What a line holds when it was read. */
export interface ImportedTrajectory {
  readonly record: TrajectoryRecord;
  readonly notes: RecordNotes;
  readonly feedback: readonly FeedbackEntry[];
}

type Rest = Omit<TrajectoryRecord, 'id' | 'question' | 'answer' | Arrays> & {
  /** [origin, tokens] runs. */
  readonly runs: readonly (readonly [TokenOrigin, number])[];
  readonly notes: Omit<RecordNotes, 'messages'>;
  readonly feedback: readonly FeedbackEntry[];
};

type Arrays = 'tokenIds' | 'origin' | 'lossMask' | 'logprobs' | 'samplingLogprobs';

export function exportLine(
  { head, record, notes }: StoredTrajectory,
  feedback: readonly FeedbackEntry[],
): ExportLine {
  const { id, question, answer, tokenIds, origin, lossMask, logprobs, samplingLogprobs, ...fields } = record;
  const { messages, ...otherNotes } = notes;
  const label = labelOf(feedback);
  const worth = worthOf(label, head.grade);
  const runs = runsOf(origin);
  const rest: Rest = { ...fields, runs, notes: otherNotes, feedback };
  return {
    id,
    question,
    messages,
    answer,
    reward: worth?.value ?? null,
    reward_source: worth?.source ?? null,
    golden_answers: label.golds?.answers ?? [],
    input_ids: tokenIds,
    completion_mask: lossMask,
    logprobs,
    sampling_logprobs: samplingLogprobs,
    prompt_length: runs[0]?.[0] === 'prompt' ? runs[0][1] : 0,
    adapter_version: head.adapterVersion,
    searchloop: JSON.stringify(rest),
  };
}

/**
 * A reward that people gave comes first, whatever was graded before it; then what came of gold answers, which a judge or a
 * vote from before them does not replace. That one answer of a pair is the better one says not how good it is.
 */
function worthOf(label: Label, grade: Grade | null): { value: number; source: string } | null {
  if (label.reward !== null) return { value: label.reward.value, source: 'feedback' };
  if (grade === null || grade.source === 'feedback') return null;
  if (label.golds !== null && (grade.source === 'judge' || grade.source === 'majority')) return null;
  return { value: grade.value, source: grade.source };
}

/** Fields whose numbers are real: written with a point, because readers guess the type from the first lines. */
const REAL: ReadonlySet<string> = new Set(['reward', 'logprobs', 'sampling_logprobs']);

/** The line as text, without its end. */
export function exportText(line: ExportLine): string {
  const fields = Object.entries(line).map(([name, value]) => {
    const text = REAL.has(name)
      ? realText(value as number | readonly number[] | null)
      : JSON.stringify(value);
    return `${JSON.stringify(name)}:${text}`;
  });
  return `{${fields.join(',')}}`;
}

function realText(value: number | readonly number[] | null): string {
  if (value === null) return 'null';
  if (typeof value !== 'number') return `[${value.map(realText).join(',')}]`;
  if (!Number.isFinite(value)) return 'null';
  const text = JSON.stringify(value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

const { shape } = trajectoryRecordSchema;
/** Names and ids. PostgreSQL has no text with a NUL in it. */
const text = z
  .string()
  .max(256)
  .min(1)
  .regex(/^[^\0]*$/, 'expected no NUL character');
/** JSON has no NaN: what is no number in an export is null, and none again here, for the audit to find. */
const logprobs = z.array(
  z
    .number()
    .nullable()
    .transform((value) => value ?? Number.NaN),
);
const line = z.object({
  id: text,
  question: shape.question,
  messages: z.array(z.object({ role: z.string(), content: z.string() })),
  answer: shape.answer,
  input_ids: shape.tokenIds,
  completion_mask: shape.lossMask,
  logprobs,
  sampling_logprobs: logprobs,
  searchloop: z.string(),
});

/** Of a record what the line does not hold under names of its own. */
const fields = trajectoryRecordSchema.omit({
  id: true,
  question: true,
  answer: true,
  tokenIds: true,
  origin: true,
  lossMask: true,
  logprobs: true,
  samplingLogprobs: true,
});
const rest = fields.extend({
  method: text,
  runs: z.array(z.tuple([tokenOriginSchema, z.number().int().min(1)])),
  notes: z.object({
    source: z.enum(['serve', 'explore', 'train', 'import']),
    askedToStore: z.boolean(),
    requestId: z.string().nullable(),
    userKey: z.string().nullable(),
    keyId: z.string().nullable(),
    originId: z.string().nullable().default(null),
    forceAnswer: z.boolean(),
  }),
  feedback: z.array(
    z.object({
      sequence: z.number(),
      id: text,
      trajectoryId: text,
      createdAt: z.number().int(),
      keyId: text,
      role: z.enum(['feedback', 'admin', 'request', 'import']),
      idempotencyKey: z.string().nullable(),
      reward: z.number().min(-1).max(1).nullable(),
      rating: z.number().min(0).max(1).nullable(),
      goldAnswers: z.array(z.string()).nullable(),
      preferredOver: z.string().nullable(),
      comment: z.string().nullable(),
    }),
  ),
});

/**
 * Reads a line that `exportLine` made. Whether the record is sound is the audit's question.
 * @param where  names the line in messages
 * @throws {InvalidInputError} it is no such line
 */
export function importLine(source: string, where: string): ImportedTrajectory {
  const outer = parseWith(line, parseJson(source, where), where);
  const inner = parseWith(rest, parseJson(outer.searchloop, `${where}, searchloop`), `${where}, searchloop`);
  const { runs, notes, feedback, ...fields } = inner;
  const sampled = runs.reduce((sum, [, count]) => sum + count, 0);
  // Before anything of that length is made.
  if (sampled !== outer.input_ids.length)
    throw new InvalidInputError(
      `${where}: searchloop.runs covers ${sampled} tokens, input_ids has ${outer.input_ids.length}`,
    );
  return {
    record: {
      ...fields,
      id: outer.id,
      question: outer.question,
      answer: outer.answer,
      tokenIds: outer.input_ids,
      origin: runs.flatMap(([origin, count]) => new Array<TokenOrigin>(count).fill(origin)),
      lossMask: outer.completion_mask,
      logprobs: outer.logprobs,
      samplingLogprobs: outer.sampling_logprobs,
    },
    notes: { ...notes, messages: outer.messages },
    feedback,
  };
}

function parseJson(source: string, where: string): unknown {
  try {
    return JSON.parse(source);
  } catch (cause) {
    throw new InvalidInputError(`${where}: expected JSON`, null, { cause });
  }
}

function parseWith<Output>(schema: z.ZodType<Output>, value: unknown, where: string): Output {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new InvalidInputError(`${where}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not valid'}`);
}

function runsOf(origin: readonly TokenOrigin[]): [TokenOrigin, number][] {
  const runs: [TokenOrigin, number][] = [];
  for (const item of origin) {
    const last = runs.at(-1);
    if (last?.[0] === item) last[1] += 1;
    else runs.push([item, 1]);
  }
  return runs;
}
