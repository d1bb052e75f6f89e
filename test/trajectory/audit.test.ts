import fc from 'fast-check';
import {
  audit,
  createTrajectoryBuilder,
  type TokenOrigin,
  type TrajectoryRecord,
} from '../../src/trajectory/index.js';
import { createPieceTokenizer } from '../support/piece-tokenizer.js';

const tokenizer = createPieceTokenizer();

type Append =
  | { kind: 'sampled'; texts: string[] }
  | { kind: 'search'; texts: string[]; query: string }
  | { kind: 'corrective'; texts: string[] };

const words = fc.constantFrom(
  'a ',
  'harbour',
  '<information>',
  '</information>',
  '<answer>',
  '</answer>',
  '<search>',
  'é',
  '\n',
  '<|im_end|>',
);
const texts = fc.array(words, { minLength: 1, maxLength: 8 });
const appends = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('sampled' as const), texts }),
    fc.record({
      kind: fc.constant('search' as const),
      texts,
      query: fc.constantFrom('who', 'when', 'where'),
    }),
    fc.record({ kind: fc.constant('corrective' as const), texts }),
  ),
  { maxLength: 8 },
);

function grow(list: readonly Append[]): TrajectoryRecord {
  const builder = createTrajectoryBuilder({ tokenizer, adapterVersion: 'v1' });
  builder.prompt([1, ...tokenizer.encodePlain('user question')]);
  const asked = new Set<string>();
  let turns = 0;
  for (const append of list) {
    const ids = append.texts.map(tokenizer.piece);
    if (append.kind === 'sampled') {
      turns += 1;
      const logprobs = ids.map((id) => -(id % 5));
      builder.sampled({ ids, logprobs, samplingLogprobs: logprobs });
      continue;
    }
    const range = builder.environment(append.kind, ids);
    if (append.kind === 'corrective') continue;
    const { query } = append;
    const duplicate = asked.has(query);
    asked.add(query);
    builder.search({
      query,
      passageIds: ['x'],
      scores: [1],
      durationMs: 2,
      error: null,
      duplicate,
      observation: range,
    });
  }
  return builder.build({
    id: 't',
    createdAt: 1,
    method: 'search-r1',
    promptTemplateDigest: 'p',
    modelDigest: 'm',
    indexSnapshotId: 's',
    sampling: {},
    seed: 7,
    groupId: null,
    question: 'question',
    answer: null,
    stop: 'length',
    validActions: turns,
    invalidActions: 0,
    forced: false,
  });
}

test('any sequence of appends passes', () => {
  fc.assert(
    fc.property(appends, (list) => {
      expect(audit(grow(list), tokenizer)).toEqual([]);
    }),
  );
});

const replaced = <T>(list: readonly T[], index: number, value: T): T[] =>
  list.map((item, i) => (i === index ? value : item));
const without = <T>(list: readonly T[], index: number): T[] => list.filter((_item, i) => i !== index);

/** Each makes one fault, given a number to pick the place with; null where the record has no such place. */
const CORRUPTIONS: Record<string, (record: TrajectoryRecord, pick: number) => TrajectoryRecord | null> = {
  'no tokens': (r) => ({ ...r, tokenIds: [], origin: [], lossMask: [], logprobs: [], samplingLogprobs: [] }),
  'id lost': (r, n) => ({ ...r, tokenIds: without(r.tokenIds, n % r.tokenIds.length) }),
  'origin lost': (r, n) => ({ ...r, origin: without(r.origin, n % r.origin.length) }),
  'mask longer': (r) => ({ ...r, lossMask: [...r.lossMask, 0] }),
  'log-probability lost': (r, n) => ({ ...r, logprobs: without(r.logprobs, n % r.logprobs.length) }),
  'sampling log-probability lost': (r) => ({ ...r, samplingLogprobs: r.samplingLogprobs.slice(1) }),
  'id not in the vocabulary': (r, n) => ({
    ...r,
    tokenIds: replaced(r.tokenIds, n % r.tokenIds.length, tokenizer.vocabSize),
  }),
  'id not whole': (r, n) => ({ ...r, tokenIds: replaced(r.tokenIds, n % r.tokenIds.length, 0.5) }),
  'mask flipped': (r, n) => {
    const at = n % r.lossMask.length;
    return { ...r, lossMask: replaced(r.lossMask, at, r.lossMask[at] === 1 ? 0 : 1) };
  },
  'origin and mask changed': (r, n) => {
    const at = n % r.origin.length;
    const other: TokenOrigin = r.origin[at] === 'policy' ? 'environment' : 'policy';
    return {
      ...r,
      origin: replaced(r.origin, at, other),
      lossMask: replaced(r.lossMask, at, other === 'policy' ? 1 : 0),
    };
  },
  'policy and information exchanged': (r, n) => {
    const places = r.origin.flatMap((origin, i) => (origin.startsWith('policy') ? [i] : []));
    if (places.length === 0) return null;
    const at = places[n % places.length] as number;
    const other: TokenOrigin = r.origin[at] === 'policy' ? 'policyInformation' : 'policy';
    return {
      ...r,
      origin: replaced(r.origin, at, other),
      lossMask: replaced(r.lossMask, at, other === 'policy' ? 1 : 0),
    };
  },
  'log-probability NaN': (r, n) => ({
    ...r,
    logprobs: replaced(r.logprobs, n % r.logprobs.length, Number.NaN),
  }),
  'log-probability positive': (r, n) => ({
    ...r,
    logprobs: replaced(r.logprobs, n % r.logprobs.length, 0.1),
  }),
  'sampling log-probability infinite': (r, n) => ({
    ...r,
    samplingLogprobs: replaced(r.samplingLogprobs, n % r.logprobs.length, Number.NEGATIVE_INFINITY),
  }),
  'log-probability of a token nobody sampled': (r) => ({ ...r, logprobs: replaced(r.logprobs, 0, -1) }),
  'version too short': (r) => ({ ...r, versions: [{ ...r.versions[0]!, end: r.tokenIds.length - 1 }] }),
  'version gap': (r) => ({ ...r, versions: [{ ...r.versions[0]!, start: 1 }] }),
  'no version': (r) => ({ ...r, versions: [] }),
  'version without a name': (r) => ({ ...r, versions: [{ ...r.versions[0]!, adapterVersion: '' }] }),
  'turn start lost': (r, n) =>
    r.turnStarts.length === 0 || adjacentTurns(r)
      ? null
      : { ...r, turnStarts: without(r.turnStarts, n % r.turnStarts.length) },
  'turn start in the prompt': (r) => ({ ...r, turnStarts: [0, ...r.turnStarts] }),
  'turn starts out of order': (r) =>
    r.turnStarts.length < 2 ? null : { ...r, turnStarts: [...r.turnStarts].reverse() },
  'observation text changed': (r, n) => withObservation(r, n, (o) => ({ ...o, text: `${o.text}x` })),
  'observation range beyond the end': (r, n) =>
    withObservation(r, n, (o) => ({ ...o, range: [o.range[0], r.tokenIds.length + 1] })),
  'observation range empty': (r, n) =>
    withObservation(r, n, (o) => ({ ...o, range: [o.range[0], o.range[0]] })),
  'observation lost': (r, n) =>
    r.observations.length === 0
      ? null
      : { ...r, observations: without(r.observations, n % r.observations.length) },
  'observation token changed': (r, n) => {
    const observation = r.observations[n % Math.max(1, r.observations.length)];
    if (observation === undefined) return null;
    return { ...r, tokenIds: replaced(r.tokenIds, observation.range[0], tokenizer.piece('other')) };
  },
  'search points elsewhere': (r, n) => withSearch(r, n, (s) => ({ ...s, observation: [1, 2] })),
  'search scores lost': (r, n) => withSearch(r, n, (s) => ({ ...s, scores: [] })),
  'search score not finite': (r, n) => withSearch(r, n, (s) => ({ ...s, scores: [Number.NaN] })),
  'search duration negative': (r, n) => withSearch(r, n, (s) => ({ ...s, durationMs: -1 })),
  'duplicate flag flipped': (r, n) => withSearch(r, n, (s) => ({ ...s, duplicate: !s.duplicate })),
  'duplicates miscounted': (r) => ({ ...r, duplicateSearches: r.duplicateSearches + 1 }),
  'more actions than turns': (r) => ({ ...r, invalidActions: 1 }),
  'forced without an opening': (r) => ({ ...r, forced: true }),
  'answered without an answer': (r) => ({ ...r, stop: 'answer' }),
  'an answer that was not sampled': (r) => ({ ...r, stop: 'answer', answer: 'never written' }),
};

/** Two turns with nothing between them: losing the second start leaves a longer turn, which is no fault. */
const adjacentTurns = (r: TrajectoryRecord): boolean =>
  r.turnStarts.some((start) => r.origin[start - 1]?.startsWith('policy'));

function withObservation(
  r: TrajectoryRecord,
  n: number,
  change: (o: TrajectoryRecord['observations'][number]) => TrajectoryRecord['observations'][number],
): TrajectoryRecord | null {
  const at = n % Math.max(1, r.observations.length);
  const observation = r.observations[at];
  return observation === undefined
    ? null
    : { ...r, observations: replaced(r.observations, at, change(observation)) };
}

function withSearch(
  r: TrajectoryRecord,
  n: number,
  change: (s: TrajectoryRecord['searches'][number]) => TrajectoryRecord['searches'][number],
): TrajectoryRecord | null {
  const at = n % Math.max(1, r.searches.length);
  const search = r.searches[at];
  return search === undefined ? null : { ...r, searches: replaced(r.searches, at, change(search)) };
}

describe('any single corruption is found', () => {
  test.each(Object.keys(CORRUPTIONS))('%s', (name) => {
    let made = 0;
    fc.assert(
      fc.property(appends, fc.nat(), (list, pick) => {
        const corrupted = CORRUPTIONS[name]?.(grow(list), pick) ?? null;
        if (corrupted === null) return;
        made += 1;
        expect(audit(corrupted, tokenizer)).not.toEqual([]);
      }),
    );
    expect(made).toBeGreaterThan(10);
  });
});

test('a rollout that says it was answered, and sampled nothing, is at fault', () => {
  const record = { ...grow([]), stop: 'budget' as const };
  expect(audit(record, tokenizer).map((fault) => fault.rule)).toEqual(['sampled']);
});

test('the answer is the text between the tags of the last turn', () => {
  const record = grow([{ kind: 'sampled', texts: ['<answer>', 'harbour', '</answer>'] }]);
  expect(audit({ ...record, stop: 'answer', answer: 'harbour' }, tokenizer)).toEqual([]);
  expect(audit({ ...record, stop: 'answer', answer: 'Harbour' }, tokenizer).map(({ rule }) => rule)).toEqual([
    'answer',
  ]);
});
