// What an answer is worth to a step, by what is known of it: a reward that was given, gold answers (by the built-in rule or a
// program in its place), a judge, the vote of its group. What nobody can tell is not trained on.

import {
  type GradedItem,
  type GradeSource,
  gradeAll,
  type RewardedRecord,
  type RewardSettings,
  type Scorers,
  scoreRecord,
} from '../../reward/index.js';
import type { Tokenizer } from '../../tokenizer/index.js';
import { type Label, labelOfGolds, NO_LABEL, type TrajectoryRecord } from '../../trajectory/index.js';
import { mapBreathing } from '../../util/breathing.js';

export interface AnswerToGrade {
  readonly record: TrajectoryRecord;
  /** Empty where none are known. */
  readonly goldenAnswers: readonly string[];
  /** Said of this very answer; null: nothing was. */
  readonly given: number | null;
}

export interface GradedAnswer {
  readonly scores: RewardedRecord;
  readonly source: GradeSource;
  /** The rule with its settings. */
  readonly rule: string;
}

/** Rule of a grade that only says which of two answers is better. */
export const COMPARED = 'preferred_over';

/** One result for each answer, in their order; null: nobody can tell. @throws {UnavailableError} a program is away */
export type GradeAnswers = (
  answers: readonly AnswerToGrade[],
  signal: AbortSignal,
) => Promise<(GradedAnswer | null)[]>;

export interface GraderSettings extends Scorers {
  readonly tokenizer: Tokenizer;
  readonly settings: RewardSettings;
  readonly majority: boolean;
}

export function createGrader(options: GraderSettings): GradeAnswers {
  const { tokenizer, settings } = options;
  return async (answers, signal) => {
    const groups = groupAnswers(answers);
    const scored = await mapBreathing(answers, ({ record, goldenAnswers }) =>
      scoreRecord(record, tokenizer, goldenAnswers, settings),
    );
    const items = answers.map((answer, at): GradedItem => {
      const group = answer.record.groupId === null ? undefined : groups.get(answer.record.groupId);
      return {
        record: answer.record,
        label: labelOfAnswer(answer),
        scores: scored[at] as RewardedRecord,
        ...(group === undefined ? {} : { groupAnswers: group }),
      };
    });
    const grades = await gradeAll(items, { ...options, signal });
    return grades.map((grade, at) => {
      if (grade === null) return null;
      const scores = { ...(scored[at] as RewardedRecord), reward: grade.value };
      return { scores, source: grade.source, rule: grade.rule };
    });
  };
}

function labelOfAnswer({ given, goldenAnswers }: AnswerToGrade): Label {
  if (given !== null) return { ...NO_LABEL, reward: { value: given, sources: [] } };
  if (goldenAnswers.length === 0) return NO_LABEL;
  return labelOfGolds(goldenAnswers);
}

function groupAnswers(answers: readonly AnswerToGrade[]): Map<string, (string | null)[]> {
  const groups = new Map<string, (string | null)[]>();
  for (const { record } of answers)
    if (record.groupId !== null)
      groups.set(record.groupId, [...(groups.get(record.groupId) ?? []), record.answer]);
  return groups;
}
