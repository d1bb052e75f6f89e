// One rollout as aligned arrays; no split into prompt and completion (protocol: invariants of a trajectory).

/**
 * Where a token came from. `policyInformation`: sampled inside a self-written information block; it has a
 * log-probability and a version but no loss.
 */
export type TokenOrigin = 'prompt' | 'policy' | 'policyInformation' | 'environment';

export interface VersionSpan {
  /** Token range [start, end) that this adapter version sampled or read. */
  readonly start: number;
  readonly end: number;
  readonly adapterVersion: string;
}

export interface SearchRecord {
  readonly query: string;
  readonly passageIds: readonly string[];
  readonly scores: readonly number[];
  readonly durationMs: number;
  readonly error: string | null;
  /** The same query was asked earlier in this rollout. */
  readonly duplicate: boolean;
  /** Token range [start, end) of the observation that holds the passages. */
  readonly observation: readonly [number, number];
}

export interface ObservationRecord {
  readonly kind: 'search' | 'corrective' | 'failure' | 'budget' | 'forced';
  /** Token range [start, end). */
  readonly range: readonly [number, number];
  /** Decoding of exactly those ids. */
  readonly text: string;
}

/**
 * Why the rollout ended. `answer`: the policy finished its answer; `stop`: a stop string or token of the
 * request, or an answer that was shown and then broke the protocol; `length`: a token limit or a full
 * sequence; `budget`: no answer within the action budget; `cancelled`: the caller went away.
 */
export type TrajectoryStop = 'answer' | 'length' | 'budget' | 'cancelled' | 'stop';

export interface TrajectoryRecord {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly method: string;
  readonly promptTemplateDigest: string;
  readonly modelDigest: string;
  readonly indexSnapshotId: string | null;
  readonly sampling: Readonly<Record<string, unknown>>;
  readonly seed: number | null;
  readonly groupId: string | null;

  /** All four have length T. */
  readonly tokenIds: readonly number[];
  readonly origin: readonly TokenOrigin[];
  /** 1 exactly where origin is `policy`. */
  readonly lossMask: readonly (0 | 1)[];
  /** Nats under the raw policy; 0 where the token was not sampled. */
  readonly logprobs: readonly number[];
  /** Nats under the sampling distribution; 0 where the token was not sampled. */
  readonly samplingLogprobs: readonly number[];

  readonly versions: readonly VersionSpan[];
  /** Token index at which each policy turn begins. */
  readonly turnStarts: readonly number[];
  readonly searches: readonly SearchRecord[];
  readonly observations: readonly ObservationRecord[];
  readonly question: string;
  /**
   * The answer that was shown; null when there is none. Where `stop` is `answer` and nothing was forced, a
   * method with answer tags has exactly the text between the tags of its last turn here.
   */
  readonly answer: string | null;
  readonly stop: TrajectoryStop;
  readonly validActions: number;
  readonly invalidActions: number;
  readonly duplicateSearches: number;
  /** The environment opened the answer (rule 11). */
  readonly forced: boolean;
}
