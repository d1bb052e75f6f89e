// What a step shows beside its rollouts: labelled questions answered by rule, as they could have been. A question that the
// policy gets wrong each time teaches nothing by reward; where its gold answer stands in what a search finds, this does.

import type { Question } from '../../evaluation/index.js';
import { isUnaskable, type RolloutRequest } from '../../rollout/index.js';
import type { TrajectoryRecord } from '../../trajectory/index.js';
import { eachOf } from '../../util/side-by-side.js';
import { GiveUp, scriptsFor } from '../warm-start/scripts.js';
import { teach, teacherOf } from '../warm-start/teach.js';
import type { Attempt } from './attempt.js';
import { chooseQuestions, type Place } from './choose-questions.js';
import type { LoopHouse } from './house.js';
import type { KnownAnswer } from './known-answer.js';
import type { LabelIndex } from './labels.js';

/** Given, not sampled: stored nowhere, since question, gold answer and index make it again. */
export interface Demonstration {
  readonly origin: KnownAnswer;
  readonly record: TrajectoryRecord;
}

export interface DemonstrationParts {
  readonly house: Pick<
    LoopHouse,
    'engine' | 'priority' | 'training' | 'settings' | 'run' | 'topK' | 'outages' | 'onNote'
  >;
  readonly labels: Pick<LabelIndex, 'toReplay' | 'present' | 'unaskable'>;
  readonly seed: number;
  readonly attempt: Pick<Attempt, 'chose'>;
  readonly signal: AbortSignal;
  /** Between looks whether searches that failed work again. */
  readonly searchPausesMs?: readonly number[];
}

/** Questions worked on at once: their searches are answered together. */
const AT_ONCE = 8;

/**
 * Further questions with gold answers, in the order of the pass, no key above its share; those whose answer a search does not
 * find, or that no rule can answer, give none.
 * @param place  where the choice of the step's other questions ended
 * @param taken  keys of those
 * @throws {SearchesAwayError} searches fail and do not come back; {CancelledError} the signal fired
 */
export async function demonstrate(
  parts: DemonstrationParts,
  place: Place,
  taken: ReadonlySet<string>,
): Promise<{ readonly demonstrations: readonly Demonstration[]; readonly place: Place }> {
  const { house, labels, seed, attempt, signal } = parts;
  const { demonstrations: count, keyShare } = house.settings;
  if (count === 0 || house.training.retriever === null) return { demonstrations: [], place };
  const questions = new Map(
    [...labels.toReplay()].filter(([key, { goldenAnswers }]) => goldenAnswers.length > 0 && !taken.has(key)),
  );
  const choice = await chooseQuestions(questions, place, { count, seed, keyShare });
  attempt.chose(choice);
  const origins = await labels.present(choice.chosen);
  const records: (TrajectoryRecord | null)[] = [];
  await eachOf(
    origins,
    AT_ONCE,
    async (origin, at, stop) => {
      await house.priority.idle(stop);
      records[at] = await demonstrationOf(parts, origin, stop);
    },
    signal,
  );
  const { pass, cursor } = choice;
  return {
    demonstrations: origins.flatMap((origin, at) => {
      const record = records[at] ?? null;
      return record === null ? [] : [{ origin, record }];
    }),
    place: { pass, cursor },
  };
}

/** Null where no rule answers it. */
async function demonstrationOf(
  { house, labels, searchPausesMs }: DemonstrationParts,
  { head, key, messages, goldenAnswers }: KnownAnswer,
  signal: AbortSignal,
): Promise<TrajectoryRecord | null> {
  const asked = messages.findLast(({ role }) => role === 'user')?.content;
  if (asked === undefined) return null;
  const question: Question = {
    ...{ id: key, dataset: '', question: asked, goldenAnswers },
    supportingTitles: [],
  };
  const script = scriptsFor(question, SETTINGS)[0];
  if (script === undefined) return null;
  const { retriever, end } = house.outages.hear(house.training.retriever);
  try {
    const record = await teach(
      {
        ...house.training,
        retriever,
        info: house.engine.info,
        ...(searchPausesMs === undefined ? {} : { searchPausesMs }),
      },
      {
        id: `demonstration-${head.id}`,
        method: 'search-r1',
        messages: messages as RolloutRequest['messages'],
        topK: house.topK,
        teacher: teacherOf(script.run),
      },
      signal,
    );
    return record.tokenIds.length > house.run.maxSequenceTokens ? null : record;
  } catch (error) {
    if (error instanceof GiveUp) return null;
    if (!isUnaskable(error as Error)) throw error;
    if (labels.unaskable.add(messages)) house.onNote(`a question is left out: ${(error as Error).message}`);
    return null;
  } finally {
    end();
  }
}

/** Nobody names the pages that a user's answer stands on: the question is what is searched for, once. */
const SETTINGS = { searches: 1, pages: new Map<string, readonly string[]>() };
