// Grows the aligned arrays of one rollout, span by span, in the order in which the sequence grew.

import { IntegrityError } from '../errors.js';
import type { Tokenizer } from '../tokenizer/index.js';
import { insideInformation } from './information.js';
import type { ObservationRecord, SearchRecord, TokenOrigin, TrajectoryRecord } from './record.js';

/** Tokens of one policy turn; the three arrays have one length. */
export interface SampledSpan {
  readonly ids: readonly number[];
  /** Nats under the raw policy. */
  readonly logprobs: readonly number[];
  /** Nats under the sampling distribution. */
  readonly samplingLogprobs: readonly number[];
}

type Grown =
  | 'tokenIds'
  | 'origin'
  | 'lossMask'
  | 'logprobs'
  | 'samplingLogprobs'
  | 'versions'
  | 'turnStarts'
  | 'searches'
  | 'observations'
  | 'duplicateSearches';

/** What the rollout states about itself when it ends; the rest was grown. */
export type TrajectoryFields = Omit<TrajectoryRecord, Grown>;

export interface TrajectoryBuilder {
  /** Tokens so far. */
  readonly length: number;
  readonly searches: readonly SearchRecord[];
  /** Appends the prompt. Once, first. */
  prompt(ids: readonly number[]): void;
  /** Appends one policy turn; nothing when it holds no token. */
  sampled(span: SampledSpan): void;
  /** Appends an observation and logs the decoding of exactly these ids. Returns its token range. */
  environment(kind: ObservationRecord['kind'], ids: readonly number[]): readonly [number, number];
  search(search: SearchRecord): void;
  build(fields: TrajectoryFields): TrajectoryRecord;
}

export interface TrajectoryBuilderOptions {
  readonly tokenizer: Tokenizer;
  /** The version that the sequence holds a lease on, from first to last token. */
  readonly adapterVersion: string;
}

/**
 * A builder whose arrays are aligned after every append.
 * Its methods throw {IntegrityError} when a span breaks the record: lengths differ, a prompt that is not
 * first, an empty observation, an array that lost step.
 */
export function createTrajectoryBuilder(options: TrajectoryBuilderOptions): TrajectoryBuilder {
  const tokenIds: number[] = [];
  const origin: TokenOrigin[] = [];
  const lossMask: (0 | 1)[] = [];
  const logprobs: number[] = [];
  const samplingLogprobs: number[] = [];
  const turnStarts: number[] = [];
  const searches: SearchRecord[] = [];
  const observations: ObservationRecord[] = [];

  const append = (
    ids: readonly number[],
    origins: readonly TokenOrigin[],
    raw: readonly number[],
    sampling: readonly number[],
  ): readonly [number, number] => {
    const lengths = [ids.length, origins.length, raw.length, sampling.length];
    if (new Set(lengths).size > 1)
      throw new IntegrityError(
        `span at token ${tokenIds.length}: ids, origin, logprobs and samplingLogprobs must have one length, got ${lengths.join(', ')}`,
      );
    const start = tokenIds.length;
    for (let i = 0; i < ids.length; i++) {
      tokenIds.push(ids[i] as number);
      origin.push(origins[i] as TokenOrigin);
      lossMask.push(origins[i] === 'policy' ? 1 : 0);
      logprobs.push(raw[i] as number);
      samplingLogprobs.push(sampling[i] as number);
    }
    return [start, tokenIds.length];
  };
  const unsampled = (ids: readonly number[], from: TokenOrigin): readonly [number, number] => {
    const zeros = new Array<number>(ids.length).fill(0);
    return append(ids, new Array<TokenOrigin>(ids.length).fill(from), zeros, zeros);
  };

  return {
    get length() {
      return tokenIds.length;
    },
    searches,
    prompt(ids) {
      if (tokenIds.length > 0)
        throw new IntegrityError(`the prompt must come first, but ${tokenIds.length} tokens are there`);
      if (ids.length === 0) throw new IntegrityError('the prompt must hold at least one token, got none');
      unsampled(ids, 'prompt');
    },
    sampled(span) {
      if (span.ids.length === 0) return;
      if (tokenIds.length === 0)
        throw new IntegrityError('a sampled span needs a prompt before it, got none');
      const inside = insideInformation(span.ids, options.tokenizer);
      const origins = inside.map((flag): TokenOrigin => (flag ? 'policyInformation' : 'policy'));
      const [start] = append(span.ids, origins, span.logprobs, span.samplingLogprobs);
      turnStarts.push(start);
    },
    environment(kind, ids) {
      if (ids.length === 0)
        throw new IntegrityError(`a ${kind} observation must hold at least one token, got none`);
      const range = unsampled(ids, 'environment');
      observations.push({ kind, range, text: options.tokenizer.decode(ids) });
      return range;
    },
    search(search) {
      searches.push(search);
    },
    build(fields) {
      return {
        ...fields,
        tokenIds: [...tokenIds],
        origin: [...origin],
        lossMask: [...lossMask],
        logprobs: [...logprobs],
        samplingLogprobs: [...samplingLogprobs],
        versions: [{ start: 0, end: tokenIds.length, adapterVersion: options.adapterVersion }],
        turnStarts: [...turnStarts],
        searches: [...searches],
        observations: [...observations],
        duplicateSearches: searches.filter((search) => search.duplicate).length,
      };
    },
  };
}
