// One rollout as aligned arrays; no split into prompt and completion (protocol: invariants of a trajectory). The types
// are those of the schemas that read a record from a file.

import { z } from 'zod';

const index = z.int().min(0);
const range = z.tuple([index, index]);

/**
 * Where a token came from. `policyInformation`: sampled inside a self-written information block; it has a
 * log-probability and a version but no loss.
 */
export const tokenOriginSchema = z.enum(['prompt', 'policy', 'policyInformation', 'environment']);

const versionSpanSchema = z.object({
  /** Token range [start, end) that this adapter version sampled or read. */
  start: index,
  end: index,
  adapterVersion: z.string(),
});

const searchSchema = z.object({
  query: z.string(),
  passageIds: z.array(z.string()),
  scores: z.array(z.number()),
  durationMs: z.number(),
  error: z.string().nullable(),
  /** The same query was asked earlier in this rollout. */
  duplicate: z.boolean(),
  /** Token range [start, end) of the observation that holds the passages. */
  observation: range,
});

const observationSchema = z.object({
  kind: z.enum(['search', 'corrective', 'failure', 'budget', 'forced']),
  /** Token range [start, end). */
  range,
  /** Decoding of exactly those ids. */
  text: z.string(),
});

/**
 * Why the rollout ended. `answer`: the policy finished its answer; `stop`: a stop string or token of the
 * request, or an answer that was shown and then broke the protocol; `length`: a token limit or a full
 * sequence; `budget`: no answer within the action budget; `cancelled`: the caller went away.
 */
const stopSchema = z.enum(['answer', 'length', 'budget', 'cancelled', 'stop']);

/** What a record has to look like to be read at all. Whether it is sound is the audit's question. */
export const trajectoryRecordSchema = z.object({
  id: z.string(),
  /** Milliseconds since 1970. */
  createdAt: z.int(),
  method: z.string(),
  promptTemplateDigest: z.string(),
  modelDigest: z.string(),
  indexSnapshotId: z.string().nullable(),
  sampling: z.record(z.string(), z.unknown()),
  seed: z.number().nullable(),
  groupId: z.string().nullable(),

  /** The five aligned arrays, all of length T. */
  tokenIds: z.array(index),
  origin: z.array(tokenOriginSchema),
  /** 1 exactly where origin is `policy`. */
  lossMask: z.array(z.literal([0, 1])),
  /** Nats under the raw policy; 0 where the token was not sampled. */
  logprobs: z.array(z.number()),
  /** Nats under the sampling distribution; 0 where the token was not sampled. */
  samplingLogprobs: z.array(z.number()),

  versions: z.array(versionSpanSchema),
  /** Token index at which each policy turn begins. */
  turnStarts: z.array(index),
  searches: z.array(searchSchema),
  observations: z.array(observationSchema),
  question: z.string(),
  /**
   * The answer that was shown; null when there is none. Where `stop` is `answer` and nothing was forced, a
   * method with answer tags has exactly the text between the tags of its last turn here.
   */
  answer: z.string().nullable(),
  stop: stopSchema,
  validActions: index,
  invalidActions: index,
  duplicateSearches: index,
  /** The environment opened the answer (rule 11). */
  forced: z.boolean(),
});

/** Records are read, never changed. */
type Unchanging<Value> = Value extends object
  ? { readonly [Key in keyof Value]: Unchanging<Value[Key]> }
  : Value;

export type TokenOrigin = z.infer<typeof tokenOriginSchema>;
export type SearchRecord = Unchanging<z.infer<typeof searchSchema>>;
export type ObservationRecord = Unchanging<z.infer<typeof observationSchema>>;
export type TrajectoryStop = z.infer<typeof stopSchema>;
export type TrajectoryRecord = Unchanging<z.infer<typeof trajectoryRecordSchema>>;
