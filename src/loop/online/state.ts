// What the loop remembers: one document in the store, written as a whole, with a step in the step's own transaction.

import { z } from 'zod';
import type { TrajectoryStore } from '../../trajectory/index.js';
import { checkJson } from '../../util/json-file.js';
import { newGuardState } from './collapse-guard.js';
import { LOOP_STATES, type LoopEvent, nextState } from './states.js';
import { newSequentialState } from './statistics/sequential-test.js';

const numbers = z.record(z.string(), z.number());

const gateTest = z.strictObject({
  name: z.enum(['probe', 'lineage', 'kl', 'validity', 'non-inferiority', 'confirmation']),
  passed: z.boolean(),
  // JSON has no NaN: what could not be measured is null.
  value: z.number().nullable(),
  limit: z.number(),
  words: z.string(),
});

const sides = z.strictObject({ newer: numbers, older: numbers });

/** Who said it, and where: what is deleted goes out of the watch. */
const word = z.strictObject({
  feedbackId: z.string(),
  keyId: z.string(),
  role: z.enum(['feedback', 'admin', 'request', 'import']),
});

/** Those of earlier builds say of nobody that they said it. */
const watched = z.strictObject({ id: z.string(), outcome: z.number(), by: z.array(word).default([]) });
export type WatchedOutcome = z.infer<typeof watched>;

const sequentialTest = z.strictObject({ pairs: z.number(), sum: z.number(), logWealth: z.array(z.number()) });

const loopState = z.strictObject({
  formatVersion: z.literal(1),
  name: z.enum(LOOP_STATES),
  pausedFor: z.string().nullable(),
  /** Nobody ordered the pause: somebody should look. */
  pausedItself: z.boolean().default(false),
  /** Why the loop waits, in words. */
  waitsFor: z.string().nullable(),
  /** Steps that were committed, ever; goes up also where the trainer went back. */
  step: z.number().int().min(0),
  /** The last committed step; null before the first. */
  ledger: z
    .strictObject({
      trainerStep: z.number().int(),
      version: z.string(),
      /** Name of the checkpoint folder. */
      checkpoint: z.string(),
      /** Sum over trained values and moments. */
      state: z.string(),
    })
    .nullable(),
  /** Seeds of a step follow from this and the step's number: there is no other state of chance. */
  seed: z.number().int(),
  /** Place in the shuffled passes over the labelled questions. */
  pass: z.number().int(),
  cursor: z.string(),
  /** The version that the loop began with: pi_ref. */
  start: z.string(),
  live: z.string(),
  /** Published versions, the live one last, each with the checkpoint it came from. */
  published: z.array(z.strictObject({ version: z.string(), trainerStep: z.number().int(), at: z.number() })),
  confirmed: z.string(),
  stretch: z.strictObject({
    attempts: z.number().int(),
    publications: z.number().int(),
    working: z.array(z.string()),
    used: z.array(z.string()),
  }),
  /** Digest of all that the last refusal rested on: the same candidate is not tried again on the same. */
  refusedOn: z.string().nullable().default(null),
  /** A candidate that the gate let pass and that is not out yet, with the fresh questions that confirmed it. */
  passed: z
    .strictObject({ version: z.string(), confirmedBy: z.array(z.string()).nullable() })
    .nullable()
    .default(null),
  /** Since the last verdict. */
  stepsSinceGate: z.number().int(),
  refusalsInARow: z.number().int(),
  /** Since the last publication: how often training went back to the live version for want of proof. */
  returns: z.number().int().default(0),
  /** Versions that users sent back, since they last let one stand. */
  rolledBackInARow: z.number().int().default(0),
  stableStep: z.number().int(),
  guard: z.strictObject({ steps: z.number(), normal: numbers, strikes: numbers }),
  /** What the guard's normal holds under. */
  guardOf: z.string().default(''),
  watch: z
    .strictObject({
      version: z.string(),
      against: z.string(),
      /** Versions that were live between the two, about which users have not decided: their outcomes count on the newer side. */
      earlier: z.array(z.string()).default([]),
      /** The checkpoint it came from: training goes on during a trial. */
      trainerStep: z.number().int(),
      /** Fresh questions that confirmed it; null: it was not put to that test. */
      confirmedBy: z.array(z.string()).nullable(),
      /** Share of requests that the new version answers while the old one stays live; 1: it is live itself. */
      share: z.number(),
      since: z.number(),
      /** Last feedback that was counted. */
      feedback: z.number().int(),
      test: sequentialTest,
      /** What it rests on, in the order in which they met. */
      pairs: z.array(z.strictObject({ newer: watched, older: watched })).default([]),
      /** What an earlier build counted: answers, and what the test was by them. Whose word each was nobody knows. */
      counted: z.array(z.string()).default([]),
      settled: sequentialTest.default(newSequentialState),
      /** Outcomes that wait for a partner. */
      newer: z.array(watched),
      older: z.array(watched),
      /** Answers that were counted, by key and by side. */
      weights: sides.default({ newer: {}, older: {} }),
      /** Labels that were not, because a key had its share. */
      beyondShare: z.number().default(0),
    })
    .nullable(),
  lastGate: z
    .strictObject({
      version: z.string(),
      verdict: z.enum(['passed', 'refused', 'waits']),
      reasons: z.array(z.string()),
      tests: z.array(gateTest),
      at: z.number(),
    })
    .nullable(),
  counts: z.strictObject({ published: z.number(), refused: z.number(), rolledBack: z.number() }),
});

export type LoopState = z.infer<typeof loopState>;

export const STATE_DOCUMENT = 'loop';
/** Questions of earlier stretches: many, and new ones seldom, so not written with each change of the state. */
export const USED_DOCUMENT = 'loop.used';
/** Beyond them the oldest go: a question that a candidate met so long ago may be asked anew. */
const MOST_USED = 100_000;
export const RECEIPTS = 'loop.receipt.';
export const receiptDocument = (version: string): string => `${RECEIPTS}${version}`;

export const newLoopState = (seed: number, start: string): LoopState => ({
  formatVersion: 1,
  name: 'waiting',
  pausedFor: null,
  pausedItself: false,
  waitsFor: null,
  step: 0,
  ledger: null,
  seed,
  pass: 0,
  cursor: '',
  start,
  live: start,
  published: [],
  confirmed: start,
  stretch: { attempts: 0, publications: 0, working: [], used: [] },
  refusedOn: null,
  passed: null,
  stepsSinceGate: 0,
  refusalsInARow: 0,
  returns: 0,
  rolledBackInARow: 0,
  stableStep: 0,
  guard: newGuardState(),
  guardOf: '',
  watch: null,
  lastGate: null,
  counts: { published: 0, refused: 0, rolledBack: 0 },
});

/** What the state's document holds; the rest is `usedOf`. */
export const documentOf = (state: LoopState): LoopState => ({
  ...state,
  stretch: { ...state.stretch, used: [] },
});

export const usedOf = ({ stretch }: LoopState): readonly string[] => stretch.used.slice(-MOST_USED);

/** @throws {FileFormatError} what is stored is of no version that is known */
export async function readLoopState(store: Pick<TrajectoryStore, 'readDocument'>): Promise<LoopState | null> {
  const stored = await store.readDocument(STATE_DOCUMENT);
  if (stored === null) return null;
  const { stretch, watch, ...state } = checkJson(stored, loopState, "the loop's state in the store");
  const document = (await store.readDocument(USED_DOCUMENT)) ?? [];
  const used = checkJson(document, z.array(z.string()), `the document ${USED_DOCUMENT}`);
  return {
    ...state,
    watch: watch && withSettled(watch),
    // Earlier builds wrote them in one.
    stretch: { ...stretch, used: [...new Set([...used, ...stretch.used])] },
  };
}

/** A watch as an earlier build wrote it has pairs in its test alone. */
function withSettled(watch: NonNullable<LoopState['watch']>): LoopState['watch'] {
  const isOlder = 2 * watch.settled.pairs < watch.counted.length;
  return isOlder ? { ...watch, settled: watch.test } : watch;
}

/** The state after an event of the table. @throws {InvalidInputError} no such transition */
export const moved = (state: LoopState, event: LoopEvent, changes: Partial<LoopState> = {}): LoopState => ({
  ...state,
  ...changes,
  name: nextState(state.name, event),
});
