// Old answers under a new rule: what each is worth now, written beside it.

import { type GradedItem, type GradeOptions, gradeAll } from '../../reward/index.js';
import {
  type Label,
  labelOf,
  labelOfGolds,
  NO_LABEL,
  type RecordFilter,
  type StoredHead,
  type StoredTrajectory,
  saysNothing,
  type TrajectoryStore,
} from '../../trajectory/index.js';
import { canonicalJson } from '../../util/digest.js';
import { questionKey } from '../online/gate/questions.js';
import type { KnownAnswer } from '../online/known-answer.js';
import { LabelIndex } from '../online/labels.js';
import { COMPARED } from '../online/rewards.js';

export type RegradeStore = Pick<
  TrajectoryStore,
  'list' | 'read' | 'texts' | 'feedbackOf' | 'lastWordsOf' | 'feedbackSince' | 'setGrades'
>;

export interface RegradeOptions extends GradeOptions {
  /** Of the model whose tokenizer reads the records. */
  readonly modelDigest: string;
  /** Also answers that nobody labelled, by the judge or the vote of their group, where these are configured. */
  readonly withUnlabelled: boolean;
}

export interface Regraded {
  readonly graded: number;
  /** Nobody can tell what they are worth; they stay as they are. */
  readonly left: number;
  /** Of other models: their tokens mean something else. They stay as they are, and so do those that failed the audit. */
  readonly otherModel: number;
  readonly quarantined: number;
}

const AT_ONCE = 100;

/**
 * The reward of each answer by the rules in force; an explicit reward stands as it was given. Rollouts of the loop are
 * graded by the gold answers that are known of their question now. May be run again at any time.
 * @throws {UnavailableError} a program that tells rewards is away; what was graded by then stays graded
 */
export async function regrade(store: RegradeStore, options: RegradeOptions): Promise<Regraded> {
  const { withUnlabelled, signal } = options;
  // Judge and vote speak where nobody else did: not of answers that were only compared.
  const rules = withUnlabelled ? options : { ...options, judge: null, majority: false };
  const groups =
    withUnlabelled && options.majority ? await answersByGroup(store, options) : new Map<string, Answers>();
  const known = new LabelIndex(store);
  await known.refresh();
  const questions = known.toReplay();
  const done = { graded: 0, left: 0, otherModel: 0, quarantined: 0 };
  const filters: RecordFilter[] = withUnlabelled ? [{}] : [{ labelled: true }, { source: 'train' }];
  for (const filter of filters)
    for await (const heads of pages(store, filter)) {
      signal?.throwIfAborted();
      // Of the loop's own the second filter brings all.
      const wanted = filter.labelled ? heads.filter(({ source }) => source !== 'train') : heads;
      const { sound, otherModel, quarantined } = sorted(wanted, options.modelDigest);
      done.otherModel += otherModel;
      done.quarantined += quarantined;
      const items = await itemsOf(store, sound, questions, groups);
      const grades = await gradeAll(items, rules);
      const told = grades.flatMap((grade, at) =>
        grade === null ? [] : [{ id: (items[at] as GradedItem).record.id, ...grade }],
      );
      done.graded += await store.setGrades(told);
      done.left += sound.length - told.length;
    }
  return done;
}

type Answers = (string | null)[];

async function* pages(store: RegradeStore, filter: RecordFilter): AsyncGenerator<StoredHead[]> {
  for (let cursor = 0; ; ) {
    const heads = await store.list(filter, { cursor, limit: AT_ONCE, order: 'oldest' });
    const last = heads.at(-1);
    if (last === undefined) return;
    cursor = last.sequence;
    yield heads;
  }
}

/** Those that can be read and may be believed, and how many of the others there are. */
function sorted(heads: readonly StoredHead[], modelDigest: string) {
  const own = heads.filter((head) => head.modelDigest === modelDigest);
  const sound = own.filter(({ auditState }) => auditState !== 'quarantined');
  return { sound, otherModel: heads.length - own.length, quarantined: own.length - sound.length };
}

async function itemsOf(
  store: RegradeStore,
  heads: readonly StoredHead[],
  questions: ReadonlyMap<string, KnownAnswer>,
  groups: ReadonlyMap<string, Answers>,
): Promise<GradedItem[]> {
  const ids = heads.map(({ id }) => id);
  const feedback = await store.feedbackOf(ids);
  return (await store.read(ids)).flatMap((stored) => {
    const { head, record } = stored;
    const own = labelOf(feedback.filter(({ trajectoryId }) => trajectoryId === record.id));
    const label = saysNothing(own) && head.source === 'train' ? labelOfRollout(stored, questions) : own;
    // The judge is not asked of what users compared.
    if (saysNothing(label) && head.grade?.rule === COMPARED) return [];
    const group = record.groupId === null ? undefined : groups.get(record.groupId);
    return [{ record, label, ...(group === undefined ? {} : { groupAnswers: group }) }];
  });
}

/** What is known of its question now, where that is asked in the same conversation. */
function labelOfRollout(
  { record, notes }: StoredTrajectory,
  questions: ReadonlyMap<string, KnownAnswer>,
): Label {
  const known = questions.get(questionKey(record.question));
  const isSame = known !== undefined && canonicalJson(known.messages) === canonicalJson(notes.messages);
  return isSame ? labelOfGolds(known.goldenAnswers) : NO_LABEL;
}

/** All answers of each group, so that a vote is one of the whole group. */
async function answersByGroup(
  store: RegradeStore,
  { modelDigest }: RegradeOptions,
): Promise<Map<string, Answers>> {
  const groups = new Map<string, Answers>();
  for await (const heads of pages(store, {}))
    for (const { groupId, answer } of sorted(heads, modelDigest).sound)
      if (groupId !== null) groups.set(groupId, [...(groups.get(groupId) ?? []), answer]);
  return groups;
}
