// What a step is made from: answers with what they are worth. Three ways to them: questions rolled out again, explored
// answers as they were given, and pairs of answers that people compared. Nothing of it is stored yet.

import { randomUUID } from 'node:crypto';
import { CancelledError } from '../../errors.js';
import { scoreRecord } from '../../reward/index.js';
import { selectGroups } from '../../training/index.js';
import { NO_NOTES, type RecordNotes, type TrajectoryRecord } from '../../trajectory/index.js';
import { derivedSeed } from '../../util/derived-seed.js';
import type { ScoredRollout } from '../offline/rollout-batch.js';
import type { Attempt } from './attempt.js';
import { chooseQuestions, type Place } from './choose-questions.js';
import { type Demonstration, demonstrate } from './demonstrate.js';
import { type Known, remembering } from './findings.js';
import type { LoopHouse } from './house.js';
import { rollIdle } from './idle-rollouts.js';
import { hasShare, shareLimit, takesShare } from './key-share.js';
import type { KnownAnswer } from './known-answer.js';
import type { AnswerPair, LabelIndex } from './labels.js';
import { clusterOf } from './logged.js';
import { loggedAnswers, usablePairs, whyNotLogged } from './logged-answers.js';
import { type AnswerToGrade, COMPARED, type GradedAnswer } from './rewards.js';
import { sound } from './sound.js';

export interface Batch {
  readonly rollouts: readonly BatchItem[];
  /** Learned beside the rollouts as they are. */
  readonly demonstrations: readonly Demonstration[];
  readonly place: Place;
}

export interface BatchItem extends ScoredRollout {
  readonly origin: KnownAnswer;
  /** Notes of a rollout of ours; null: the record is in the store already. */
  readonly notes: RecordNotes | null;
  /** Who said what it is worth: kept with the record. */
  readonly graded: Pick<GradedAnswer, 'source' | 'rule'>;
  /** Its reward says which of two is better, and nothing about how good it is. */
  readonly isCompared: boolean;
}

export interface Plan {
  readonly step: number;
  readonly seed: number;
  readonly adapter: string | null;
  readonly place: Place;
}

export interface BatchParts {
  readonly house: LoopHouse;
  readonly labels: LabelIndex;
  readonly plan: Plan;
  readonly known: Known;
  /** Told what is chosen, before anything is done with it. */
  readonly attempt: Pick<Attempt, 'chose' | 'took'>;
  readonly signal: AbortSignal;
  readonly onRollout: (done: number, total: number) => void;
}

/** Answers that are read, and scored under the present policy, for each that a step may take: the next step reads on. */
const MOST_READS = 4;
/** Of the sequences of a step at most this share are pairs. */
const PAIRED_SHARE = 0.5;

/**
 * @throws {CancelledError} the signal fired; {UnavailableError} a program that tells rewards is away
 * @throws {IntegrityError} too many rollouts of the step failed the audit
 */
export async function makeBatch(given: BatchParts): Promise<Batch> {
  const parts = { ...given, known: remembering(given.known) };
  const { house, plan } = parts;
  const paired = await pairedItems(parts);
  const left = house.run.batchSequences - paired.length;
  const { items, place } =
    house.settings.mode === 'replay'
      ? await replayedItems(parts, left)
      : { items: await loggedItems(parts, left, idsOf(paired)), place: plan.place };
  const rollouts = await sound(parts, [...paired, ...items]);
  const taken = new Set(rollouts.map(({ origin }) => origin.key));
  const shown = await demonstrate({ ...parts, seed: plan.seed }, place, taken);
  const { pass, cursor } = shown.place;
  return { rollouts, demonstrations: shown.demonstrations, place: { pass, cursor } };
}

const idsOf = (items: readonly BatchItem[]): Set<string> => new Set(items.map(({ record }) => record.id));

/** Stored answers that the step is trained on as they were given; the others are rollouts of its own. */
export const givenIds = ({ rollouts }: Batch): string[] =>
  rollouts.flatMap(({ record, notes }) => (notes === null ? [record.id] : []));

/** Rounds of questions of a step whose groups are to differ. */
const MOST_ROUNDS = 4;

/**
 * Rolls chosen questions out again. Where the algorithm samples dynamically, groups of equal rewards give way to further
 * questions, a few rounds at most.
 */
async function replayedItems(
  parts: BatchParts,
  sequences: number,
): Promise<{ items: readonly BatchItem[]; place: Place }> {
  const { labels, plan, attempt } = parts;
  const { run, settings } = parts.house;
  const wanted = Math.max(1, Math.floor(sequences / run.groupSize));
  const step = { count: wanted, weight: new Map<string, number>() };
  const questions = new Map(labels.toReplay());
  const items: BatchItem[] = [];
  const differing = () =>
    selectGroups(
      items.map(({ record, scores }) => ({ groupId: record.groupId as string, reward: scores.reward })),
      wanted,
    );
  let { place } = plan;
  let count = wanted;
  for (let round = 0; round < MOST_ROUNDS && count > 0; round++) {
    const choice = await chooseQuestions(questions, place, {
      count,
      seed: plan.seed,
      keyShare: settings.keyShare,
      step,
    });
    if (round > 0 && choice.chosen.length === 0) break;
    place = choice;
    attempt.chose(choice);
    for (const { key } of choice.chosen) questions.delete(key);
    items.push(...(await rolledOut(parts, choice.chosen, `loop-${plan.step}-${round}`)));
    count = run.dynamicSampling ? differing().missingGroups : 0;
  }
  const kept = run.dynamicSampling ? differing().kept.map((at) => items[at] as BatchItem) : items;
  // Nothing differs: the step then has no signal, and its figures say so.
  return { items: kept.length === 0 ? items : kept, place };
}

/** `groupSize` rollouts of each question, and what they are worth. */
async function rolledOut(
  { house, labels, plan, signal, onRollout }: BatchParts,
  questions: readonly KnownAnswer[],
  name: string,
): Promise<BatchItem[]> {
  const jobs = (await labels.present(questions)).flatMap((origin, q) =>
    Array.from({ length: house.run.groupSize }, (_, sample) => ({
      id: `loop-${randomUUID()}`,
      groupId: `${name}-${q}`,
      messages: origin.messages,
      seed: derivedSeed(plan.seed, 'loop', plan.step, origin.key, sample),
      adapter: plan.adapter,
      temperature: 1,
      origin,
    })),
  );
  const { priority, training, topK, outages, onNote } = house;
  const records = await rollIdle(
    { priority, parts: training, topK, unaskable: labels.unaskable, outages, onNote },
    jobs,
    signal,
    (done) => onRollout(done, jobs.length),
  );
  const drafts = records.flatMap((record, i) =>
    record === null ? [] : [{ origin: jobs[i]!.origin, record, given: null }],
  );
  const items = await gradedItems(house, drafts, signal);
  return items.map((item) => ({
    ...item,
    notes: {
      ...NO_NOTES,
      source: 'train' as const,
      // Whoever's question it was may have all of it deleted.
      userKey: item.origin.userKey,
      keyId: item.origin.head.keyId,
      messages: item.origin.messages,
    },
  }));
}

/**
 * Explored answers as they were given, where somebody said or can tell what they are worth; no key above its share.
 * @param paired  in the step already, as members of pairs
 */
async function loggedItems(
  parts: BatchParts,
  sequences: number,
  paired: ReadonlySet<string>,
): Promise<BatchItem[]> {
  const { house, labels, known, attempt, signal } = parts;
  const limit = shareLimit(house.settings.keyShare, sequences);
  const weight = new Map<string, number>();
  const drafts: Draft[] = [];
  let reads = MOST_READS * sequences;
  for (const origin of loggedAnswers(house, labels, known).usable) {
    if (drafts.length >= sequences || reads === 0) break;
    if (paired.has(origin.head.id) || !hasShare(origin, weight, limit)) continue;
    if ((await labels.present([origin])).length === 0) continue;
    reads--;
    const record = await fittingRecord(parts, origin);
    if (record === null) continue;
    takesShare(origin, weight, limit);
    const given = origin.label.reward?.value ?? null;
    drafts.push({ origin, record: { ...record, groupId: record.id }, given });
  }
  attempt.took(drafts.map(({ record }) => record.id));
  const items = await gradedItems(house, drafts, signal);
  const graded = new Set(items.map(({ record }) => record.id));
  for (const { record } of drafts)
    if (!graded.has(record.id)) known.note(record.id, 'nobody can tell what it is worth');
  return items;
}

/** The stored record where it can be learned from; null where not, and why is noted. */
async function fittingRecord(
  { house, plan, known, signal }: BatchParts,
  { head }: KnownAnswer,
): Promise<TrajectoryRecord | null> {
  if (signal.aborted) throw new CancelledError();
  const [stored] = await house.store.read([head.id]);
  if (stored === undefined) return null;
  const reason = await whyNotLogged(house, stored, plan.adapter, signal);
  if (reason !== null) known.note(head.id, reason);
  return reason === null ? stored.record : null;
}

/** Of each pair both answers, or neither: the better one is worth 1, the other 0. */
async function pairedItems(parts: BatchParts): Promise<BatchItem[]> {
  const { house, labels, known, attempt } = parts;
  const most = Math.floor((PAIRED_SHARE * house.run.batchSequences) / 2);
  const records = new Map<string, TrajectoryRecord>();
  const isUnread = ({ head }: KnownAnswer): boolean => !records.has(head.id);
  let reads = MOST_READS * 2 * most;
  // Until all that are chosen were read: in place of each that proves of no use another one is chosen.
  for (;;) {
    const chosen = usablePairs(house, labels, known, most);
    const unread = chosen.flatMap(bothOf).filter(isUnread).slice(0, reads);
    if (unread.length === 0) {
      const pairs = chosen.filter((pair) => !bothOf(pair).some(isUnread));
      attempt.took(pairs.flatMap(bothOf).map(({ head }) => head.id));
      return pairs.flatMap((pair) => comparedItems(house, pair, records));
    }
    reads -= unread.length;
    for (const answer of await labels.present(unread)) {
      const record = await fittingRecord(parts, answer);
      if (record !== null) records.set(answer.head.id, record);
    }
  }
}

const bothOf = ({ better, worse }: AnswerPair): KnownAnswer[] => [better, worse];

function comparedItems(
  house: LoopHouse,
  pair: AnswerPair,
  records: ReadonlyMap<string, TrajectoryRecord>,
): BatchItem[] {
  const groupId = `pair-${pair.better.head.id}`;
  return bothOf(pair).map((origin, place) => {
    const reward = place === 0 ? 1 : 0;
    const record = { ...(records.get(origin.head.id) as TrajectoryRecord), groupId };
    return {
      ...itemOf({ origin, record, given: reward }),
      scores: { ...scoreRecord(record, house.training.tokenizer, origin.goldenAnswers), reward },
      graded: { source: 'feedback', rule: COMPARED },
      isCompared: true,
    };
  });
}

interface Draft {
  readonly origin: KnownAnswer;
  readonly record: TrajectoryRecord;
  readonly given: number | null;
}

/** Those of which nobody can tell what they are worth are left out. */
async function gradedItems(
  house: LoopHouse,
  drafts: readonly Draft[],
  signal: AbortSignal,
): Promise<BatchItem[]> {
  const asked = drafts.map(
    ({ origin, record, given }): AnswerToGrade => ({ record, goldenAnswers: origin.goldenAnswers, given }),
  );
  const grades = await house.grade(asked, signal);
  return drafts.flatMap((draft, at) => {
    const grade = grades[at] ?? null;
    if (grade === null) return [];
    const { scores, source, rule } = grade;
    return [{ ...itemOf(draft), scores, graded: { source, rule } }];
  });
}

function itemOf({ origin, record }: Draft): Omit<BatchItem, 'graded' | 'scores'> {
  return {
    origin,
    record,
    question: {
      id: origin.key,
      dataset: clusterOf(record.question),
      question: record.question,
      goldenAnswers: origin.goldenAnswers,
      supportingTitles: [],
    },
    notes: null,
    isCompared: false,
  };
}
