// Makes a file of warm-start trajectories: questions of the training part in an order that balances the sets, the
// first script that works for each, one line as soon as it is there. Run again, it goes on where it ended.

import { CancelledError, InvalidInputError } from '../../errors.js';
import { partOf, type Question } from '../../evaluation/index.js';
import type { Passage, Retriever } from '../../retrieval/index.js';
import { type FailedSearch, FailedSearches } from '../../rollout/index.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';
import { openJsonLines } from '../../util/json-lines.js';
import type { OnProgress } from '../../util/progress.js';
import { aloneOn } from './alone.js';
import type { WarmStartLine } from './line.js';
import { linesSoFar } from './lines-so-far.js';
import { GiveUp, type NamedScript, scriptsFor } from './scripts.js';
import { coreTitle, sameTitle } from './support.js';
import { type TeachingHouse, teach, teacherOf } from './teach.js';

export interface WarmStartOptions {
  readonly house: TeachingHouse;
  readonly questions: readonly Question[];
  /** File of JSON lines; see `WarmStartLine`. */
  readonly output: string;
  /** Trajectories to make. */
  readonly count: number;
  /** Passages of a search. */
  readonly topK: number;
  readonly onProgress?: OnProgress;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

export interface WarmStartSummary {
  readonly trajectories: number;
  /** Trajectories by set and script. */
  readonly kinds: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Questions that no script could answer, by set and the first script's reason. */
  readonly left: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly tokens: number;
  readonly trainedTokens: number;
}

/** Goes up when the scripts change what they write. */
const RULES_VERSION = 6;
/** Largest share of trajectories whose first search finds nothing. */
const RETRY_SHARE = 0.08;
/** Questions worked on at once: their searches are answered together. */
const AT_ONCE = 8;

/**
 * @throws {InvalidInputError} a question of the validation part
 * @throws {IntegrityError} the file was begun with other settings (the message holds both digests), or holds trajectories
 *   of questions that are not among these
 * @throws {CancelledError} the signal fired; {UnavailableError} searches do not come back; the file holds all that was finished
 */
export async function makeWarmStart(options: WarmStartOptions): Promise<WarmStartSummary> {
  refuseValidation(options.questions);
  return aloneOn(options.output, options, () => goOn(options));
}

async function goOn(options: WarmStartOptions): Promise<WarmStartSummary> {
  const { questions, output, count, signal, house } = options;
  const settingsDigest = digestOf(house, { topK: options.topK, method: 'search-r1' });
  const sources = new Map(questions.map((question) => [question.id, question]));
  const lines = await linesSoFar({ output, settingsDigest, sources, onNote: options.onNote });
  const left: Record<string, Record<string, number>> = {};
  const done = new Set(lines.map(({ questionId }) => questionId));
  const wanted = balancedOrder(questions).filter(({ id }) => !done.has(id));
  const total = Math.min(count, lines.length + wanted.length);
  const writer = await openJsonLines(output);
  const report = (): void =>
    options.onProgress?.({ stage: 'warm start', done: lines.length, total, unit: 'trajectories' });
  const keep = async (question: Question, line: WarmStartLine | string): Promise<void> => {
    const retries = lines.filter(({ kind }) => kind === 'retry').length;
    const tooMany = retries >= RETRY_SHARE * count;
    if (typeof line === 'string') countUp(left, question.dataset, line);
    else if (line.kind === 'retry' && tooMany) countUp(left, question.dataset, 'enough second tries');
    else {
      await writer.append(line);
      lines.push(line);
      report();
    }
  };
  try {
    for (let at = 0; at < wanted.length && lines.length < count; at += AT_ONCE) {
      if (signal?.aborted) throw new CancelledError();
      const together = wanted.slice(at, at + AT_ONCE);
      const made = await Promise.all(together.map((question) => lineFor(question, options, settingsDigest)));
      // In order, so that the file does not depend on which search was faster.
      for (const [i, line] of made.entries())
        if (lines.length < count) await keep(together[i] as Question, line);
    }
  } finally {
    await writer.close();
  }
  return { ...summarise(lines), left };
}

function refuseValidation(questions: readonly Question[]): void {
  const held = questions.find(({ id }) => partOf(id) === 'validation');
  if (held !== undefined)
    throw new InvalidInputError(`question ${held.id} is of the validation part, which is never trained on`);
}

export function digestOf(house: TeachingHouse, settings: Readonly<Record<string, unknown>>): string {
  const { retriever, searchWidth = null, info, config, prompts } = house;
  return sha256Hex(
    canonicalJson({
      ...settings,
      rules: RULES_VERSION,
      model: info.modelDigest,
      index: retriever?.snapshotId ?? null,
      retriever: retriever?.info.kind ?? null,
      ef: searchWidth,
      config,
      prompts: Object.values(prompts).map(({ digest }) => digest),
    }),
  );
}

/**
 * Sets in turn, so that a file of any length holds the same number of each while they last; within a set in the
 * order of a hash.
 */
function balancedOrder(questions: readonly Question[]): Question[] {
  const sets = new Map<string, Question[]>();
  for (const question of questions)
    sets.set(question.dataset, [...(sets.get(question.dataset) ?? []), question]);
  const placed = [...sets.values()].flatMap((set) => {
    const order = set.map((question) => ({ question, key: sha256Hex(`w${question.id}`) }));
    order.sort((a, b) => (a.key < b.key ? -1 : 1));
    return order.map(({ question, key }, place) => ({ question, key, place }));
  });
  return placed.sort((a, b) => a.place - b.place || (a.key < b.key ? -1 : 1)).map(({ question }) => question);
}

const PAGE_DEPTH = 10;

/** What the index has of the supporting pages, or why it cannot be told. @throws what `searchPages` throws */
async function pagesOf(
  question: Question,
  { retriever, searchPausesMs }: TeachingHouse,
  signal: AbortSignal = new AbortController().signal,
): Promise<Map<string, string[]> | string> {
  const titles = question.supportingTitles;
  if (retriever === null || titles.length < 2) return new Map();
  const failed = new FailedSearches(retriever, searchPausesMs);
  const found = await searchPages(titles.map(coreTitle), retriever, failed, signal);
  if (typeof found === 'string') return found;
  return new Map(
    titles.map((title, i) => [
      title,
      (found[i] ?? []).filter((passage) => sameTitle(passage.title, title)).map(({ text }) => text),
    ]),
  );
}

/**
 * What is found, or why this search is never answered while others are.
 * @throws {UnavailableError} searches fail and do not come back; {CancelledError} the signal fired
 */
async function searchPages(
  queries: readonly string[],
  retriever: Retriever,
  failed: FailedSearches,
  signal: AbortSignal,
): Promise<Passage[][] | string> {
  for (;;) {
    const found = await retriever
      .search(queries, PAGE_DEPTH, { signal })
      .catch((error: Error) => `the search failed: ${error.message}`);
    if (typeof found !== 'string') return found;
    if (signal.aborted) throw new CancelledError();
    try {
      failed.check({ query: queries.join(', '), error: found });
      return found;
    } catch (failure) {
      await failed.after(failure as FailedSearch, signal);
    }
  }
}

/** The line of the first script that works, or why none did. */
async function lineFor(
  question: Question,
  options: WarmStartOptions,
  settingsDigest: string,
): Promise<WarmStartLine | string> {
  const { house, topK, signal } = options;
  const pages = await pagesOf(question, house, signal);
  if (typeof pages === 'string') return pages;
  const settings = { searches: house.config.actionBudget, pages };
  const reasons: string[] = [];
  for (const script of scriptsFor(question, settings)) {
    const record = await tryScript(question, script, { house, topK, signal });
    if (typeof record === 'string') {
      reasons.push(record);
      continue;
    }
    const { id: questionId, dataset, goldenAnswers } = question;
    return { questionId, dataset, goldenAnswers, kind: script.kind, settingsDigest, record };
  }
  return reasons[0] ?? 'no script is for it';
}

/** The record, or why there is none. */
async function tryScript(
  question: Question,
  script: NamedScript,
  { house, topK, signal }: Pick<WarmStartOptions, 'house' | 'topK' | 'signal'>,
): Promise<WarmStartLine['record'] | string> {
  const lesson = {
    id: `warm-start-${question.id}`,
    method: 'search-r1' as const,
    messages: [{ role: 'user' as const, content: question.question }],
    topK,
    teacher: teacherOf(script.run),
  };
  try {
    return await teach(house, lesson, signal);
  } catch (error) {
    if (error instanceof GiveUp) return error.message;
    throw error;
  }
}

export function summarise(lines: readonly WarmStartLine[]): Omit<WarmStartSummary, 'left'> {
  const kinds: Record<string, Record<string, number>> = {};
  for (const { dataset, kind } of lines) countUp(kinds, dataset, kind);
  const sum = (value: (line: WarmStartLine) => number): number =>
    lines.reduce((total, line) => total + value(line), 0);
  return {
    trajectories: lines.length,
    kinds,
    tokens: sum(({ record }) => record.tokenIds.length),
    trainedTokens: sum(({ record }) => record.lossMask.reduce<number>((a, b) => a + b, 0)),
  };
}

export function countUp(table: Record<string, Record<string, number>>, row: string, column: string): void {
  table[row] = { ...table[row], [column]: (table[row]?.[column] ?? 0) + 1 };
}
