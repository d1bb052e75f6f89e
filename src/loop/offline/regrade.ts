// Old answers under a new rule: what each is worth now, written beside it.

import { type GradedItem, type GradeOptions, gradeAll } from '../../reward/index.js';
import { labelOf, type TrajectoryStore } from '../../trajectory/index.js';

export type RegradeStore = Pick<TrajectoryStore, 'list' | 'read' | 'feedbackOf' | 'setGrades'>;

export interface RegradeOptions extends GradeOptions {
  /** Also answers that nobody labelled, by the judge or the vote of their group, where these are configured. */
  readonly withUnlabelled: boolean;
}

export interface Regraded {
  readonly graded: number;
  /** Nobody can tell what they are worth; they stay as they are. */
  readonly left: number;
}

const AT_ONCE = 100;

/**
 * The reward of each answer by the rules in force; an explicit reward stands as it was given. May be run again at any time.
 * @throws {UnavailableError} a program that tells rewards is away; what was graded by then stays graded
 */
export async function regrade(store: RegradeStore, options: RegradeOptions): Promise<Regraded> {
  const { withUnlabelled, majority = false, signal } = options;
  const groups = withUnlabelled && majority ? await answersByGroup(store) : new Map();
  let [graded, left, cursor] = [0, 0, 0];
  for (;;) {
    signal?.throwIfAborted();
    const filter = withUnlabelled ? {} : { labelled: true };
    const heads = await store.list(filter, { cursor, limit: AT_ONCE, order: 'oldest' });
    const last = heads.at(-1);
    if (last === undefined) return { graded, left };
    cursor = last.sequence;
    // The loop's own rollouts are graded by what was known of their question.
    const ids = heads.filter(({ source }) => source !== 'train').map(({ id }) => id);
    const feedback = await store.feedbackOf(ids);
    const items = (await store.read(ids)).map(({ record }): GradedItem => {
      const group = record.groupId === null ? undefined : groups.get(record.groupId);
      return {
        record,
        label: labelOf(feedback.filter(({ trajectoryId }) => trajectoryId === record.id)),
        ...(group === undefined || group.length < 2 ? {} : { groupAnswers: group }),
      };
    });
    const grades = await gradeAll(items, options);
    const known = grades.flatMap((grade, at) =>
      grade === null ? [] : [{ id: (items[at] as GradedItem).record.id, ...grade }],
    );
    graded += await store.setGrades(known);
    left += items.length - known.length;
  }
}

/** All answers of each group, so that a vote is one of the whole group. */
async function answersByGroup(store: RegradeStore): Promise<Map<string, (string | null)[]>> {
  const groups = new Map<string, (string | null)[]>();
  let cursor = 0;
  for (;;) {
    const heads = await store.list({}, { cursor, limit: AT_ONCE, order: 'oldest' });
    const last = heads.at(-1);
    if (last === undefined) return groups;
    cursor = last.sequence;
    for (const { groupId, answer } of heads)
      if (groupId !== null) groups.set(groupId, [...(groups.get(groupId) ?? []), answer]);
  }
}
