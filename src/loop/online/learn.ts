// One step of learning: whether there is enough for it, and the update. Commits nothing: that is the loop's.

import { checkpointFolder, type StepReport, type Trainer } from '../../training/index.js';
import { derivedSeed } from '../../util/derived-seed.js';
import type { Learned } from '../offline/learned.js';
import { trainerVersions } from '../offline/sampling-version.js';
import { stepWork } from '../offline/step-work.js';
import type { Batch, Plan } from './batch.js';
import type { Known } from './findings.js';
import { gateInterval } from './gate-interval.js';
import { checkpointsOf, type LoopHouse } from './house.js';
import type { LabelIndex } from './labels.js';
import { loggedAnswers, usablePairs } from './logged-answers.js';
import type { LoopState } from './state.js';
import { unusedLabels } from './unused.js';

/** Questions, answers and pairs that a step could be made of, and how many labels it could not, by reason. */
function materialOf(house: LoopHouse, labels: LabelIndex, known: Known) {
  const pairs = usablePairs(house, labels, known);
  const unused = unusedLabels(house, labels);
  if (house.settings.mode === 'replay')
    return { count: labels.toReplay().size + pairs.length, unusable: unused };
  const { usable, unusable } = loggedAnswers(house, labels, known);
  // What is in a pair is not taken a second time.
  const paired = new Set(pairs.flatMap(({ better, worse }) => [better.head.id, worse.head.id]));
  const others = usable.filter(({ head }) => !paired.has(head.id));
  return { count: others.length + pairs.length, unusable: { ...unusable, ...unused } };
}

/** What the loop would need for a step, in words; null: nothing is missing. */
export function missingForStep(house: LoopHouse, labels: LabelIndex, known: Known): string | null {
  const { mode, minQuestions } = house.settings;
  const { count, unusable } = materialOf(house, labels, known);
  if (count >= minQuestions) return null;
  const what = mode === 'replay' ? 'questions' : 'explored answers';
  const others = Object.entries(unusable).map(([reason, answers]) => `${answers} ${reason}`);
  const why = others.length > 0 ? ` (others may not: ${others.join(', ')})` : '';
  return `${count} labelled ${what} may be trained on; a step needs ${minQuestions}${why}`;
}

/** What a verdict waits for, the gate's or the users' on a trial, where training must not run further ahead; null: it may go on. */
export function unjudged(
  { settings }: Pick<LoopHouse, 'settings'>,
  state: Pick<LoopState, 'stepsSinceGate' | 'lastGate' | 'watch' | 'returns' | 'rolledBackInARow'>,
): string | null {
  const { stepsSinceGate, lastGate, watch } = state;
  if (stepsSinceGate < MOST_AHEAD * gateInterval(settings.gateEvery, state)) return null;
  if (watch !== null && watch.share < 1)
    return `version ${watch.version.slice(0, 12)} is on trial, and no other is judged before its end: users have labelled ${watch.test.pairs} pairs of answers, one of each version, and it goes live after ${settings.watchMaxPairs}`;
  return lastGate?.verdict === 'waits' ? (lastGate.reasons[0] ?? null) : null;
}

/** Whether a step that an admin asks for has anything to learn from. */
export const hasAnything = (house: LoopHouse, labels: LabelIndex, known: Known): boolean =>
  materialOf(house, labels, known).count > 0;

/** So many times the steps of a verdict may be made while it waits. */
const MOST_AHEAD = 4;
/** Steps that the shares of the warm-ups are of. */
const HORIZON = 1000;

/** Updates the trainer's values. @throws {NonFiniteError} the step is rejected, nothing has changed */
export async function trainOn(
  house: LoopHouse,
  trainer: Trainer,
  batch: Batch,
  plan: Plan,
  { baselines, klBeta }: Learned,
  signal: AbortSignal,
): Promise<StepReport> {
  const { run } = house;
  // The loop has no end that a rate could fall towards.
  const shape = 'constant' as const;
  const work = stepWork({
    settings: {
      ...run,
      policySchedule: { ...run.policySchedule, shape },
      valueSchedule: { ...run.valueSchedule, shape },
    },
    trainer,
    versions: await trainerVersions(trainer),
    batch: batch.rollouts.map((item) => ({ ...item, isLogged: item.notes === null })),
    demonstrations: {
      records: batch.demonstrations.map(({ record }) => record),
      weight: house.settings.demonstrationWeight,
    },
    baselines,
    klBeta,
    steps: HORIZON,
    seed: derivedSeed(plan.seed, 'step', plan.step),
    // The policy that the loop began with; always, because gate and guard watch the distance.
    reference: checkpointFolder(checkpointsOf(house.folder), 0),
  });
  const stop = house.priority.watch((mayWork) => Atomics.store(house.pause, 0, mayWork ? 0 : 1));
  // A step that shall end must not stand still.
  const wake = (): void => void Atomics.store(house.pause, 0, 0);
  signal.addEventListener('abort', wake);
  try {
    await house.priority.idle(signal);
    return await trainer.run(work, { signal });
  } finally {
    stop();
    signal.removeEventListener('abort', wake);
    wake();
  }
}
