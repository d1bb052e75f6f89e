// Checks a record against the invariants of a trajectory (protocol, section 3) and against itself. A record
// with faults is kept apart and never trained on.

import type { Tokenizer } from '../tokenizer/index.js';
import { extractAnswer } from './answer.js';
import { insideInformation } from './information.js';
import { type TokenOrigin, type TrajectoryRecord, tokenOriginSchema } from './record.js';
import { sampledText } from './sampled-text.js';

export type AuditRule =
  | 'lengths'
  | 'ids'
  | 'origin'
  | 'mask'
  | 'logprobs'
  | 'versions'
  | 'turns'
  | 'observations'
  | 'searches'
  | 'counts'
  | 'answer'
  | 'sampled';

export interface AuditFault {
  readonly rule: AuditRule;
  /** What was expected, what came and where. */
  readonly message: string;
}

type Report = (rule: AuditRule, message: string) => void;
type Check = (record: TrajectoryRecord, tokenizer: Tokenizer, report: Report) => void;

/** Methods whose answer stands between answer tags; the others show the whole text. */
const TAGGED_METHODS: ReadonlySet<string> = new Set(['search-r1', 'cot']);

const ORIGINS: ReadonlySet<TokenOrigin> = new Set(tokenOriginSchema.options);

const isSampled = (origin: TokenOrigin | undefined): boolean =>
  origin === 'policy' || origin === 'policyInformation';

/**
 * All faults of a record; none means that it may be trained on. Tests, in this order: array lengths, then
 * (only when they agree) ids, origins, mask, log-probabilities, versions, turns, observations, searches,
 * counts, answer. What it cannot see: another valid id, or another negative log-probability, in place of one.
 *
 * @param tokenizer  the policy's own; observations are decoded with it
 */
export function audit(record: TrajectoryRecord, tokenizer: Tokenizer): AuditFault[] {
  const faults: AuditFault[] = [];
  const report: Report = (rule, message) => faults.push({ rule, message });
  checkLengths(record, tokenizer, report);
  if (faults.length > 0) return faults;
  for (const check of CHECKS) check(record, tokenizer, report);
  return faults;
}

const checkLengths: Check = (record, _tokenizer, report) => {
  const T = record.tokenIds.length;
  if (T === 0) report('lengths', 'tokenIds must not be empty');
  for (const name of ['origin', 'lossMask', 'logprobs', 'samplingLogprobs'] as const)
    if (record[name].length !== T)
      report('lengths', `${name}: expected ${T} entries, as many as tokenIds, got ${record[name].length}`);
};

const checkIds: Check = (record, tokenizer, report) => {
  for (const [index, id] of record.tokenIds.entries())
    if (!Number.isInteger(id) || id < 0 || id >= tokenizer.vocabSize)
      report('ids', `tokenIds[${index}]: expected an id below ${tokenizer.vocabSize}, got ${id}`);
};

const checkOrigin: Check = (record, _tokenizer, report) => {
  for (const [index, origin] of record.origin.entries()) {
    if (!ORIGINS.has(origin)) report('origin', `origin[${index}]: unknown origin ${String(origin)}`);
    if (origin === 'prompt' && index > 0 && record.origin[index - 1] !== 'prompt')
      report('origin', `origin[${index}]: prompt after ${record.origin[index - 1]}; the prompt is one run`);
  }
  if (record.origin[0] !== 'prompt')
    report('origin', `origin[0]: expected prompt, got ${String(record.origin[0])}`);
};

const checkMask: Check = (record, _tokenizer, report) => {
  let trained = 0;
  for (const [index, mask] of record.lossMask.entries()) {
    const expected = record.origin[index] === 'policy' ? 1 : 0;
    if (mask !== expected)
      report('mask', `lossMask[${index}]: expected ${expected} for ${record.origin[index]}, got ${mask}`);
    trained += mask;
  }
  const mayBeEmpty = record.stop === 'cancelled' || record.stop === 'length';
  if (trained === 0 && !mayBeEmpty)
    report('sampled', `no token of the policy, though the rollout says it stopped by "${record.stop}"`);
};

const checkLogprobs: Check = (record, _tokenizer, report) => {
  for (const name of ['logprobs', 'samplingLogprobs'] as const)
    for (const [index, value] of record[name].entries()) {
      const fine = isSampled(record.origin[index]) ? Number.isFinite(value) && value <= 0 : value === 0;
      if (!fine)
        report(
          'logprobs',
          `${name}[${index}]: ${value} is not allowed for a token of ${record.origin[index]}`,
        );
    }
};

const checkVersions: Check = (record, _tokenizer, report) => {
  let covered = 0;
  for (const [index, span] of record.versions.entries()) {
    if (span.start !== covered || !(span.end > span.start))
      report(
        'versions',
        `versions[${index}]: expected a span from ${covered}, got [${span.start}, ${span.end})`,
      );
    if (!span.adapterVersion) report('versions', `versions[${index}]: the adapter version is empty`);
    covered = span.end;
  }
  if (covered !== record.tokenIds.length)
    report('versions', `versions cover ${covered} of ${record.tokenIds.length} tokens`);
};

const checkTurns: Check = (record, tokenizer, report) => {
  const starts = new Set(record.turnStarts);
  for (const [index, start] of record.turnStarts.entries()) {
    if (!isSampled(record.origin[start]))
      report('turns', `turnStarts[${index}]: token ${start} was not sampled`);
    if (index > 0 && !(start > (record.turnStarts[index - 1] as number)))
      report('turns', `turnStarts[${index}]: ${start} does not come after ${record.turnStarts[index - 1]}`);
  }
  for (const [index, origin] of record.origin.entries())
    if (isSampled(origin) && !isSampled(record.origin[index - 1]) && !starts.has(index))
      report('turns', `token ${index} begins a sampled run, but no turn starts there`);
  for (const [start, end] of turnRanges(record)) {
    const inside = insideInformation(record.tokenIds.slice(start, end), tokenizer);
    for (const [offset, flag] of inside.entries()) {
      const expected = flag ? 'policyInformation' : 'policy';
      if (record.origin[start + offset] !== expected)
        report(
          'origin',
          `origin[${start + offset}]: the text says ${expected}, got ${record.origin[start + offset]}`,
        );
    }
  }
};

/** Token ranges of the policy's turns. */
function turnRanges(record: TrajectoryRecord): [number, number][] {
  const starts = new Set(record.turnStarts);
  return record.turnStarts
    .filter((start) => isSampled(record.origin[start]))
    .map((start) => {
      let end = start + 1;
      while (isSampled(record.origin[end]) && !starts.has(end)) end++;
      return [start, end];
    });
}

const checkObservations: Check = (record, tokenizer, report) => {
  const covered = new Array<boolean>(record.tokenIds.length).fill(false);
  let last = 0;
  for (const [index, { range, text }] of record.observations.entries()) {
    const [start, end] = range;
    if (!isRange(range, record) || start < last) {
      report('observations', `observations[${index}]: [${start}, ${end}) is not a range after token ${last}`);
      continue;
    }
    last = end;
    covered.fill(true, start, end);
    const decoded = tokenizer.decode(record.tokenIds.slice(start, end));
    if (decoded !== text)
      report(
        'observations',
        `observations[${index}]: its text is not the decoding of tokens [${start}, ${end})`,
      );
  }
  for (const [index, origin] of record.origin.entries())
    if ((origin === 'environment') !== covered[index])
      report(
        'observations',
        `token ${index} of ${origin} is ${covered[index] ? '' : 'not '}in an observation`,
      );
};

const isRange = ([start, end]: readonly [number, number], record: TrajectoryRecord): boolean =>
  Number.isInteger(start) &&
  Number.isInteger(end) &&
  0 <= start &&
  start < end &&
  end <= record.tokenIds.length;

const checkSearches: Check = (record, _tokenizer, report) => {
  const holders = new Set(
    record.observations
      .filter(({ kind }) => kind === 'search' || kind === 'failure')
      .map(({ range }) => range.join()),
  );
  const firstOutside = record.origin.findIndex((origin) => origin !== 'prompt');
  holders.add(`0,${firstOutside < 0 ? record.origin.length : firstOutside}`);
  const asked = new Set<string>();
  for (const [index, search] of record.searches.entries()) {
    if (!holders.has(search.observation.join()))
      report('searches', `searches[${index}]: [${search.observation.join(', ')}) holds no passages`);
    if (search.passageIds.length !== search.scores.length)
      report(
        'searches',
        `searches[${index}]: ${search.passageIds.length} ids, ${search.scores.length} scores`,
      );
    if (!search.scores.every(Number.isFinite))
      report('searches', `searches[${index}]: a score is not finite`);
    if (!(search.durationMs >= 0))
      report('searches', `searches[${index}]: durationMs is ${search.durationMs}`);
    if (search.duplicate !== asked.has(search.query))
      report(
        'searches',
        `searches[${index}]: duplicate is ${search.duplicate}, earlier queries say otherwise`,
      );
    asked.add(search.query);
  }
};

const checkCounts: Check = (record, _tokenizer, report) => {
  const duplicates = record.searches.filter((search) => search.duplicate).length;
  if (record.duplicateSearches !== duplicates)
    report('counts', `duplicateSearches: expected ${duplicates}, got ${record.duplicateSearches}`);
  const actions = record.validActions + record.invalidActions;
  if (!(record.validActions >= 0 && record.invalidActions >= 0 && actions <= record.turnStarts.length))
    report(
      'counts',
      `${record.validActions} valid and ${record.invalidActions} invalid actions in ${record.turnStarts.length} turns`,
    );
  const forced = record.observations.some(({ kind }) => kind === 'forced');
  if (record.forced !== forced)
    report('counts', `forced: expected ${forced} by the observations, got ${record.forced}`);
};

const checkAnswer: Check = (record, tokenizer, report) => {
  if (record.stop !== 'answer') return;
  if (record.answer === null) report('answer', 'stop is "answer", but the answer is null');
  if (record.forced || !TAGGED_METHODS.has(record.method)) return;
  const last = turnRanges(record).at(-1);
  const text = last === undefined ? '' : sampledText(record.tokenIds.slice(...last), tokenizer);
  // What the last token carries beyond the closing tag is not looked at.
  const end = text.indexOf('</answer>') + '</answer>'.length;
  if (extractAnswer(text.slice(0, end)) !== record.answer)
    report('answer', 'the answer is not the text between the answer tags of the last turn');
};

const CHECKS: readonly Check[] = [
  checkIds,
  checkOrigin,
  checkMask,
  checkLogprobs,
  checkVersions,
  checkTurns,
  checkObservations,
  checkSearches,
  checkCounts,
  checkAnswer,
];
