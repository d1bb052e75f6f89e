// One step of learning: questions, rollouts, rewards, an update, the guard's word. Commits nothing: that is the loop's.

import { randomUUID } from 'node:crypto';
import {
  checkpointFolder,
  derivedSeed,
  learningRates,
  type RunningBaselines,
  type StepReport,
  type StepWork,
  type Trainer,
} from '../../training/index.js';
import {
  audit,
  NO_NOTES,
  type RecordNotes,
  type StoredTrajectory,
  type TrajectoryRecord,
} from '../../trajectory/index.js';
import type { ScoredRollout } from '../offline/rollout-batch.js';
import { trainingSequence } from '../offline/rollout-batch.js';
import { type Choice, chooseQuestions, type Place } from './choose-questions.js';
import { checkpointsOf, type LoopHouse } from './house.js';
import { rollIdle } from './idle-rollouts.js';
import type { LabelIndex, LabelledAnswer } from './labels.js';
import { clusterOf, isTooFar, type Unusable, unusableHead, unusableRecord } from './logged.js';
import { scoreTokens } from './score-tokens.js';

/** What a step is made from; nothing of it is stored yet. */
export interface Batch {
  readonly rollouts: readonly BatchItem[];
  readonly place: Place;
  readonly quarantined: number;
}

export interface BatchItem extends ScoredRollout {
  readonly origin: LabelledAnswer;
  /** Notes of a rollout of ours; null: the record is in the store already. */
  readonly notes: RecordNotes | null;
}

export interface Plan {
  readonly step: number;
  readonly seed: number;
  readonly adapter: string | null;
  readonly place: Place;
}

/** What the loop would need for a step, in words; null: nothing is missing. */
export function missingForStep(
  house: LoopHouse,
  labels: LabelIndex,
  wasUsed: (id: string) => boolean,
): string | null {
  const { mode, minQuestions } = house.settings;
  const count =
    mode === 'replay' ? labels.toReplay().size : loggedAnswers(house, labels, wasUsed).usable.length;
  return count >= minQuestions
    ? null
    : `${count} labelled ${mode === 'replay' ? 'questions' : 'explored answers'} may be trained on; a step needs ${minQuestions}`;
}

/** Whether a step that an admin asks for has anything to learn from. */
export function hasAnything(house: LoopHouse, labels: LabelIndex, wasUsed: (id: string) => boolean): boolean {
  return house.settings.mode === 'replay'
    ? labels.toReplay().size > 0
    : loggedAnswers(house, labels, wasUsed).usable.length > 0;
}

/** Rolls chosen questions out again, `groupSize` times each, and scores them. */
export async function replayBatch(
  house: LoopHouse,
  labels: LabelIndex,
  plan: Plan,
  signal: AbortSignal,
  onRollout: (done: number, total: number) => void,
): Promise<Batch> {
  const { run, settings } = house;
  const count = Math.max(1, Math.floor(run.batchSequences / run.groupSize));
  const choice: Choice = chooseQuestions(labels.toReplay(), plan.place, {
    count,
    seed: plan.seed,
    keyShare: settings.keyShare,
  });
  const present = await labels.present(choice.chosen);
  const jobs = present.flatMap((origin, q) =>
    Array.from({ length: run.groupSize }, (_, sample) => ({
      id: `loop-${randomUUID()}`,
      groupId: `loop-${plan.step}-${q}`,
      messages: origin.messages,
      seed: derivedSeed(plan.seed, 'loop', plan.step, origin.key, sample),
      adapter: plan.adapter,
      temperature: 1,
      origin,
    })),
  );
  const records = await rollIdle(
    { priority: house.priority, parts: house.training, topK: house.topK },
    jobs,
    signal,
    (done) => onRollout(done, jobs.length),
  );
  const items = records.map((record, i): BatchItem => {
    const { origin } = jobs[i]!;
    const notes = {
      ...NO_NOTES,
      source: 'train' as const,
      // Whoever's question it was may have all of it deleted.
      userKey: origin.userKey,
      messages: origin.messages,
    };
    return { ...scoredItem(house, origin, record, origin.goldenAnswers, null), notes };
  });
  return audited(house, items, choice);
}

/** Explored answers as they were given, where their feedback came. */
export async function loggedBatch(
  house: LoopHouse,
  labels: LabelIndex,
  plan: Plan,
  wasUsed: (id: string) => boolean,
  signal: AbortSignal,
): Promise<Batch> {
  const { run } = house;
  const { usable } = loggedAnswers(house, labels, wasUsed);
  const items: BatchItem[] = [];
  for (const origin of await labels.present(usable)) {
    if (items.length >= run.batchSequences) break;
    const [stored] = await house.store.read([origin.head.id]);
    if (stored === undefined || (await whyNotLogged(house, stored, plan.adapter, signal)) !== null) continue;
    const given = origin.label.kind === 'reward' ? origin.label.value : null;
    const record = { ...stored.record, groupId: stored.record.id };
    items.push({ ...scoredItem(house, origin, record, origin.goldenAnswers, given), notes: null });
  }
  return audited(house, items, plan.place);
}

/** Labelled answers by whether they can be learned from as they stand. */
export function loggedAnswers(
  house: Pick<LoopHouse, 'engine'>,
  labels: LabelIndex,
  wasUsed: (id: string) => boolean,
): { readonly usable: LabelledAnswer[]; readonly unusable: Readonly<Partial<Record<Unusable, number>>> } {
  const rules = {
    modelDigest: house.engine.info.modelDigest,
    mayTeach: (answer: LabelledAnswer) => labels.mayTeach(answer),
    wasUsed,
  };
  const usable: LabelledAnswer[] = [];
  const unusable: Partial<Record<Unusable, number>> = {};
  for (const answer of labels.answers()) {
    const reason = unusableHead(answer, rules);
    if (reason === null) usable.push(answer);
    else unusable[reason] = (unusable[reason] ?? 0) + 1;
  }
  return { usable, unusable };
}

async function whyNotLogged(
  house: LoopHouse,
  stored: StoredTrajectory,
  adapter: string | null,
  signal: AbortSignal,
): Promise<Unusable | null> {
  const reason = unusableRecord(stored);
  if (reason !== null) return reason;
  for (;;) {
    const { generator, yielded } = house.priority.training(signal);
    try {
      const now = await scoreTokens(generator, stored.record, adapter);
      if (!yielded()) return isTooFar(stored, now) ? 'too far from the present policy' : null;
    } catch (error) {
      if (signal.aborted || !yielded()) throw error;
    }
  }
}

function scoredItem(
  house: LoopHouse,
  origin: LabelledAnswer,
  record: TrajectoryRecord,
  goldenAnswers: readonly string[],
  given: number | null,
): Omit<BatchItem, 'notes'> {
  const scores = house.score(record, goldenAnswers);
  return {
    origin,
    record,
    question: {
      id: origin.key,
      dataset: clusterOf(record.question),
      question: record.question,
      goldenAnswers,
      supportingTitles: [],
    },
    scores: given === null ? scores : { ...scores, reward: given },
  };
}

/** Records that break an invariant are never trained on. */
function audited(house: LoopHouse, items: readonly BatchItem[], { pass, cursor }: Place): Batch {
  const rollouts = items.filter(({ record }) => {
    const fault = audit(record, house.training.tokenizer)[0];
    if (fault !== undefined)
      house.onNote(`rollout ${record.id} is not trained on: ${fault.rule}: ${fault.message}`);
    return fault === undefined;
  });
  return { rollouts, place: { pass, cursor }, quarantined: items.length - rollouts.length };
}

/** Steps over which a learning rate that changes would change. */
const HORIZON = 1000;

/** Updates the trainer's values. @throws {NonFiniteError} the step is rejected, nothing has changed */
export async function trainOn(
  house: LoopHouse,
  trainer: Trainer,
  batch: Batch,
  plan: Plan,
  baselines: RunningBaselines,
  signal: AbortSignal,
): Promise<StepReport> {
  const { run } = house;
  const { version } = trainer.committed;
  const constant = { ...run, policySchedule: { ...run.policySchedule, shape: 'constant' as const } };
  const rates = learningRates(constant, trainer.step + 1, HORIZON);
  const { weightDecay, maxGradientNorm } = run;
  const work: StepWork = {
    step: trainer.step + 1,
    version,
    algorithm: run.objective,
    supervised: false,
    sequences: batch.rollouts.map((item) => trainingSequence(item, version, baselines)),
    batchEpochs: run.batchEpochs,
    miniBatchSequences: run.miniBatchSequences,
    policy: { learningRate: rates.policy, weightDecay, maxGradientNorm },
    value: { learningRate: rates.value, weightDecay, maxGradientNorm },
    microBatchTokens: run.microBatchTokens,
    seed: derivedSeed(plan.seed, 'step', plan.step),
    // The policy that the loop began with; always, because gate and guard watch the distance.
    reference: checkpointFolder(checkpointsOf(house.folder), 0),
    versions: {},
  };
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
