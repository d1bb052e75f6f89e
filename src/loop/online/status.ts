// What `GET /admin/loop` and `searchloop loop status` show.

import type { Known } from './findings.js';
import { configuredQuestions } from './gate/questions.js';
import { gateInterval } from './gate-interval.js';
import type { LoopHouse } from './house.js';
import type { LabelIndex } from './labels.js';
import { loggedAnswers, usablePairs } from './logged-answers.js';
import type { LoopState } from './state.js';
import { evidenceOf } from './statistics/sequential-test.js';
import { unusedLabels } from './unused.js';

export interface LoopFacts {
  readonly labelled: number;
  readonly replayable: number;
  readonly judging: number;
  /** Fewest questions of a verdict. */
  readonly judgingNeeded: number;
  readonly gateEvery: number;
  readonly loggedUsable: number;
  readonly loggedUnusable: Readonly<Record<string, number>>;
  readonly pairs: number;
  /** Labels from which nothing is learned, by reason. */
  readonly unused: Readonly<Record<string, number>>;
  readonly mode: 'replay' | 'logged';
  readonly algorithm: string;
  readonly progress: { readonly done: number; readonly total: number } | null;
  readonly busy: boolean;
  readonly yields: number;
  readonly lastError: string | null;
  /** What the loop does not get on without, and cannot have now. */
  readonly away: string | null;
  /** When the loop began to wait, for that or by its state. */
  readonly waitsSince: number | null;
}

export type LoopStatus = ReturnType<typeof statusOf>;

export function statusOf(state: LoopState, facts: LoopFacts) {
  const { watch, stretch } = state;
  return {
    object: 'loop',
    state: state.name,
    paused_for: state.pausedFor,
    waits_for: facts.away ?? state.waitsFor,
    /** Milliseconds since 1970; of a process that was started since, its start at the earliest. */
    waits_since: facts.waitsSince,
    last_error: facts.lastError,
    mode: facts.mode,
    algorithm: facts.algorithm,
    step: state.step,
    /** 0: the candidate is judged as soon as there are questions, and no other is tried by users. */
    steps_to_gate: Math.max(0, gateInterval(facts.gateEvery, state) - state.stepsSinceGate),
    live: state.live,
    start: state.start,
    candidate: state.ledger?.version ?? null,
    published: state.published.map(({ version, at }) => ({ version, at })),
    counts: {
      published: state.counts.published,
      refused: state.counts.refused,
      rolled_back: state.counts.rolledBack,
    },
    last_gate: state.lastGate,
    stretch: {
      attempts: stretch.attempts,
      publications: stretch.publications,
      questions: stretch.working.length,
      confirmed: state.confirmed,
    },
    watch:
      watch === null
        ? null
        : {
            version: watch.version,
            against: watch.against,
            earlier: watch.earlier,
            share: watch.share,
            pairs: watch.test.pairs,
            mean_difference: watch.test.pairs === 0 ? null : watch.test.sum / watch.test.pairs,
            evidence_of_worse: evidenceOf(watch.test),
            beyond_share: watch.beyondShare,
          },
    labels: {
      answers: facts.labelled,
      questions_to_train_on: facts.replayable,
      questions_to_judge_by: facts.judging,
      questions_needed_to_judge: facts.judgingNeeded,
      logged_usable: facts.loggedUsable,
      logged_unusable: facts.loggedUnusable,
      pairs: facts.pairs,
      unused: facts.unused,
    },
    rollouts: facts.progress,
    users_busy: facts.busy,
    yields: facts.yields,
  } as const;
}

/** All facts but those of the work under way. */
export function factsOf(
  { settings, gateQuestions, priority, ...house }: LoopHouse,
  labels: LabelIndex,
  known: Known,
): Omit<LoopFacts, 'progress' | 'lastError' | 'away' | 'waitsSince'> {
  const { usable, unusable } = loggedAnswers(house, labels, known);
  const own = configuredQuestions(gateQuestions).filter(({ messages }) => !labels.unaskable.has(messages));
  return {
    labelled: labels.answers().length,
    replayable: labels.toReplay().size,
    judging: new Set([...labels.toJudge(), ...own].map(({ key }) => key)).size,
    judgingNeeded: house.gate.questions,
    gateEvery: settings.gateEvery,
    loggedUsable: usable.length,
    loggedUnusable: unusable,
    pairs: usablePairs({ ...house, settings }, labels, known).length,
    unused: unusedLabels({ ...house, settings }, labels),
    mode: settings.mode,
    algorithm: settings.algorithm,
    busy: priority.busy,
    yields: priority.yields,
  };
}
