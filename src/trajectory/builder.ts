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

interface AlignedArrays {
  readonly tokenIds: number[];
  readonly origin: TokenOrigin[];
  readonly lossMask: (0 | 1)[];
  readonly logprobs: number[];
  readonly samplingLogprobs: number[];
}

/** Appends a span to every array, or to none. Returns its token range [start, end). */
function appendSpan(
  arrays: AlignedArrays,
  span: SampledSpan & { readonly origin: readonly TokenOrigin[] },
): readonly [number, number] {
  const { ids, origin, logprobs, samplingLogprobs } = span;
  const start = arrays.tokenIds.length;
  const lengths = [ids.length, origin.length, logprobs.length, samplingLogprobs.length];
  if (new Set(lengths).size > 1)
    throw new IntegrityError(
      `span at token ${start}: ids, origin, logprobs and samplingLogprobs must have one length, got ${lengths.join(', ')}`,
    );
  for (const [i, id] of ids.entries()) {
    arrays.tokenIds.push(id);
    arrays.origin.push(origin[i] as TokenOrigin);
    arrays.lossMask.push(origin[i] === 'policy' ? 1 : 0);
    arrays.logprobs.push(logprobs[i] as number);
    arrays.samplingLogprobs.push(samplingLogprobs[i] as number);
  }
  return [start, arrays.tokenIds.length];
}

/** Tokens that nobody sampled: no log-probability, no loss. */
function appendUnsampled(
  arrays: AlignedArrays,
  ids: readonly number[],
  from: TokenOrigin,
): readonly [number, number] {
  const zeros = ids.map(() => 0);
  return appendSpan(arrays, { ids, origin: ids.map(() => from), logprobs: zeros, samplingLogprobs: zeros });
}

/**
 * A builder whose arrays are aligned after every append.
 * Its methods throw {IntegrityError} when a span breaks the record: lengths differ, a prompt that is not
 * first, an empty observation.
 */
export function createTrajectoryBuilder(options: TrajectoryBuilderOptions): TrajectoryBuilder {
  const arrays: AlignedArrays = {
    tokenIds: [],
    origin: [],
    lossMask: [],
    logprobs: [],
    samplingLogprobs: [],
  };
  const turnStarts: number[] = [];
  const searches: SearchRecord[] = [];
  const observations: ObservationRecord[] = [];
  const length = (): number => arrays.tokenIds.length;

  return {
    get length() {
      return length();
    },
    searches,
    prompt(ids) {
      if (length() > 0)
        throw new IntegrityError(`the prompt must come first, but ${length()} tokens are there`);
      if (ids.length === 0) throw new IntegrityError('the prompt must hold at least one token, got none');
      appendUnsampled(arrays, ids, 'prompt');
    },
    sampled(span) {
      if (span.ids.length === 0) return;
      if (length() === 0) throw new IntegrityError('a sampled span needs a prompt before it, got none');
      const inside = insideInformation(span.ids, options.tokenizer);
      const origin = inside.map((flag): TokenOrigin => (flag ? 'policyInformation' : 'policy'));
      const [start] = appendSpan(arrays, { ...span, origin });
      turnStarts.push(start);
    },
    environment(kind, ids) {
      if (ids.length === 0)
        throw new IntegrityError(`a ${kind} observation must hold at least one token, got none`);
      const range = appendUnsampled(arrays, ids, 'environment');
      observations.push({ kind, range, text: options.tokenizer.decode(ids) });
      return range;
    },
    search(search) {
      searches.push(search);
    },
    build: (fields) => ({
      ...fields,
      tokenIds: [...arrays.tokenIds],
      origin: [...arrays.origin],
      lossMask: [...arrays.lossMask],
      logprobs: [...arrays.logprobs],
      samplingLogprobs: [...arrays.samplingLogprobs],
      versions: [{ start: 0, end: length(), adapterVersion: options.adapterVersion }],
      turnStarts: [...turnStarts],
      searches: [...searches],
      observations: [...observations],
      duplicateSearches: searches.filter((search) => search.duplicate).length,
    }),
  };
}
