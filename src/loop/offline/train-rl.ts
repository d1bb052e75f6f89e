// Reinforcement learning, offline: roll out with the present policy, score, update, commit; once a step.
//
// Every rollout is to be sampled by the version that is then updated; what a record names another version for is told, and
// left out where that one is too old. The adapter of each step is committed before it is sampled from: what a killed run
// had beyond its last commit is rolled out again, to the bit.

import { join } from 'node:path';
import { CancelledError } from '../../errors.js';
import type { Tokenizer } from '../../tokenizer/index.js';
import {
  type CommitReport,
  checkpointFolder,
  listCheckpoints,
  openFigures,
  pruneCheckpoints,
  type RunFigures,
  type RunSettings,
  readMetrics,
  type StepReport,
  type Trainer,
} from '../../training/index.js';
import { audit } from '../../trajectory/index.js';
import { derivedSeed } from '../../util/derived-seed.js';
import { writeJsonFile } from '../../util/json-file.js';
import { writeJsonLines } from '../../util/json-lines.js';
import { learnedSoFar } from './learned.js';
import type { LockStepRollouts } from './lock-step-rollouts.js';
import { handOver, type TrainingOutcome } from './outcome.js';
import {
  type BatchParts,
  batchFigures,
  groupsOfStep,
  type SampledBatch,
  type ScoredRollout,
  sampleBatch,
} from './rollout-batch.js';
import type { RunFolder } from './run-folder.js';
import { trainerVersions } from './sampling-version.js';
import { stepWork } from './step-work.js';
import type { TrainingEvents } from './train-sft.js';

export interface RlParts extends Pick<BatchParts, 'questions' | 'score'> {
  readonly settings: RunSettings;
  readonly run: RunFolder;
  readonly trainer: Trainer;
  readonly rollouts: LockStepRollouts;
  readonly tokenizer: Tokenizer;
  /** Folder of the reference policy, or `base`; null: the policy that the run starts from. */
  readonly reference: string | null;
  /** Figures of a committed policy on questions that are not trained on. */
  readonly validate?: (policy: CommitReport) => Promise<Readonly<Record<string, number>>>;
}

export interface RlEvents extends TrainingEvents {
  readonly onRollout?: (done: number, total: number, step: number) => void;
  readonly onValidation?: (figures: Readonly<Record<string, number>>, step: number) => void;
  readonly onNote?: (line: string) => void;
}

/** Steps of a run: as configured, else what the passes over the questions take. */
export function rlSteps(settings: RunSettings, questions: number): number {
  return settings.steps ?? Math.ceil((settings.epochs * questions) / groupsOfStep(settings));
}

/**
 * Trains from the trainer's step to the end. Questions that cannot be asked are left out.
 * @returns the best policy on validation, or the last one where nothing was validated
 * @throws {InvalidInputError} none of the questions can be asked
 * @throws {CancelledError} the signal fired; what was committed stays, and the run can go on from there
 * @throws {NonFiniteError} a step was rejected; says where the number came from
 * @throws {IntegrityError} too many rollouts of a step failed the audit; likewise
 */
export async function trainRl(given: RlParts, events: RlEvents = {}): Promise<TrainingOutcome> {
  const { settings, run, trainer, rollouts } = given;
  const parts = { ...given, questions: await rollouts.askable(given.questions, events) };
  const steps = rlSteps(settings, parts.questions.length);
  const written = await openFigures(run.folder, run.metrics, trainer.step);
  const validation = await openValidation(parts, steps, written, events);
  const learned = learnedSoFar(settings, trainer.carried);
  try {
    await validation.after(trainer.committed);
    while (trainer.step < steps) {
      const step = trainer.step + 1;
      const { folder, version } = trainer.committed;
      await rollouts.use(folder, version);
      const begun = performance.now();
      const sampled = await auditedBatch(parts, step, events);
      const { batch } = sampled;
      const rolloutSeconds = (performance.now() - begun) / 1000;
      const work = stepWork({
        settings,
        trainer,
        versions: await trainerVersions(trainer),
        batch,
        baselines: learned.baselines,
        klBeta: learned.klBeta,
        steps,
        seed: derivedSeed(settings.seed, 'step', step),
        reference: referenceOf(parts),
      });
      const report = await trainer.run(work, {
        ...(events.signal === undefined ? {} : { signal: events.signal }),
        ...(events.onTokens === undefined ? {} : { onTokens: events.onTokens }),
      });
      for (const { question, scores } of batch) learned.baselines.update(question.dataset, scores.reward);
      learned.follow(report.metrics.kl, batch.length);
      tellOfOthers(batch, version, report, events);
      const figures = { ...report.metrics, ...batchFigures(sampled) };
      const { tokens, seconds } = report;
      await written.step({ step, ...figures, tokens, seconds, rolloutSeconds });
      events.onStep?.({ ...report, metrics: { ...figures, rolloutSeconds } }, steps);
      await trainer.commit(learned.carried());
      await validation.after(trainer.committed);
      await keepCheckpoints(parts, validation.best());
    }
  } finally {
    await written.close();
  }
  return handOver(run, steps, await bestOrLast(parts, validation.best()));
}

/** Records that break an invariant are never trained on. */
async function auditedBatch(parts: RlParts, step: number, events: RlEvents): Promise<SampledBatch> {
  const { signal } = events;
  const sampled = await sampleBatch(
    {
      settings: parts.settings,
      questions: parts.questions,
      score: parts.score,
      faultOf(record) {
        const fault = audit(record, parts.tokenizer)[0];
        if (fault === undefined) return null;
        const reason = `${fault.rule}: ${fault.message}`;
        events.onNote?.(`rollout ${record.id} is not trained on: ${reason}`);
        return reason;
      },
      roll: (jobs) =>
        parts.rollouts.roll(jobs, {
          ...(signal === undefined ? {} : { signal }),
          onRecord: (done) => events.onRollout?.(done, jobs.length, step),
        }),
    },
    step,
  );
  if (signal?.aborted) throw new CancelledError();
  return sampled;
}

/** An engine that goes on with an old adapter must not do so in silence. */
function tellOfOthers(
  batch: readonly ScoredRollout[],
  version: string,
  { step, metrics }: StepReport,
  { onNote }: RlEvents,
): void {
  const named = batch.map(({ record }) => record.versions.find((span) => span.adapterVersion !== version));
  const others = named.flatMap((span) => (span === undefined ? [] : [span.adapterVersion]));
  if (others.length > 0)
    onNote?.(
      `step ${step}: ${others.length} of ${batch.length} rollouts are of version ${others[0]?.slice(0, 12)}, though the engine was given ${version.slice(0, 12)}; ${metrics.staleRollouts} are too old and left out`,
    );
}

const referenceOf = ({ settings, run, reference }: RlParts): string | null =>
  settings.objective.klPlace === 'none' ? null : (reference ?? checkpointFolder(run.checkpoints, 0));

/** Every step is committed; of these, the multiples of `checkpointEvery` are kept longer, and the best one for good. */
async function keepCheckpoints({ settings, run, trainer }: RlParts, best: number | null): Promise<void> {
  const { checkpointEvery, keepCheckpoints: count } = settings;
  const last = Math.floor(trainer.step / checkpointEvery);
  const multiples = Array.from({ length: count }, (_, back) => (last - back) * checkpointEvery);
  await pruneCheckpoints(run.checkpoints, {
    keepLast: 1,
    keep: best === null ? multiples : [...multiples, best],
  });
}

/** What the run gives: the best on validation where there was one, else the last. */
async function bestOrLast({ run, trainer }: RlParts, best: number | null): Promise<CommitReport> {
  if (best === null || best === trainer.step) return trainer.committed;
  const { checkpoints } = await listCheckpoints(run.checkpoints);
  const found = checkpoints.find(({ manifest }) => manifest.step === best);
  if (found === undefined) return trainer.committed;
  const { folder, manifest } = found;
  return { ...trainer.committed, folder, step: manifest.step, version: manifest.version };
}

interface Validation {
  /** Validates where the policy's step asks for it, or is the last, and it was not done yet. */
  after(policy: CommitReport): Promise<void>;
  /** Step with the most exact matches; the first of several. */
  best(): number | null;
}

async function openValidation(
  { run, trainer, validate, settings: { validateEvery } }: RlParts,
  steps: number,
  written: RunFigures,
  events: RlEvents,
): Promise<Validation> {
  const path = join(run.folder, 'validation.jsonl');
  const rows = (await readMetrics(path)).filter((row) => row.step <= trainer.step);
  const best = () =>
    rows.reduce<(typeof rows)[number] | null>(
      (found, row) => (found === null || (row.exactMatch ?? 0) > (found.exactMatch ?? 0) ? row : found),
      null,
    )?.step ?? null;
  return {
    best,
    async after(policy) {
      if (validate === undefined || validateEvery === 0) return;
      if (policy.step % validateEvery !== 0 && policy.step !== steps) return;
      if (rows.some(({ step }) => step === policy.step)) return;
      const figures = await validate(policy);
      rows.push({ step: policy.step, ...figures });
      await writeJsonLines(path, rows);
      await written.validation({ step: policy.step, ...figures });
      await writeJsonFile(join(run.folder, 'best.json'), { step: best() });
      events.onValidation?.(figures, policy.step);
    },
  };
}
