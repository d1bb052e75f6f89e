// What travels between the trainer and its thread in the pool.

import type { AlgorithmSettings } from '../algorithms/index.js';
import type { UpdateRule } from '../optimizers/index.js';
import type { TrainingSequence } from '../step/sequences.js';

/** A committed state: what a thread that has not got the session opens. */
export interface CommittedState {
  readonly folder: string;
  readonly step: number;
  readonly state: string;
}

/**
 * Where a session stands. Its values alone do not tell: a step without an update leaves them as they are, and another number and
 * other moments behind.
 */
export type SessionPoint = Pick<CommittedState, 'step' | 'state'>;

export interface StepWork {
  /** Optimizer step, from 1. */
  readonly step: number;
  readonly algorithm: AlgorithmSettings;
  readonly supervised: boolean;
  /** Among rollouts, those that are none are demonstrations. */
  readonly sequences: readonly TrainingSequence[];
  /** Of the cross-entropy on demonstrations, beside the loss of rollouts. */
  readonly demonstrationWeight: number;
  /** Passes over the sequences; the first is enough for supervised work. */
  readonly batchEpochs: number;
  /** Sequences of one update. */
  readonly miniBatchSequences: number;
  readonly policy: UpdateRule;
  readonly value: UpdateRule;
  readonly microBatchTokens: number;
  /** Of what is drawn in the step. */
  readonly seed: number;
  /** The policy version that the step starts from. */
  readonly version: string;
  /** Folder of the reference policy, or `base`; null: no KL is computed. */
  readonly reference: string | null;
  /** Folders of earlier versions that sampled some of the sequences, by version. */
  readonly versions: Readonly<Record<string, string>>;
}

export interface StepReport {
  readonly step: number;
  /** Names the state after the step: the sum over all trained values. */
  readonly state: string;
  /** Figures by name. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Tokens run, forward and backward. */
  readonly tokens: number;
  readonly seconds: number;
}

/** What a run carries on beside values and moments; plain data. */
export type Carried = Readonly<Record<string, unknown>>;

export interface CommitReport {
  readonly folder: string;
  readonly step: number;
  readonly version: string;
  readonly state: string;
}

interface InSession<Spec> {
  /** Names the run within the process. */
  readonly session: string;
  readonly spec: Spec;
}

export type TrainerTask<Spec> =
  /** Opens the start values and commits them as step 0. */
  | (InSession<Spec> & { readonly kind: 'begin'; readonly root: string; readonly configDigest: string })
  /** Opens a checkpoint whatever parts it holds: a critic that it lacks begins anew, one that the spec lacks is left out. */
  | (InSession<Spec> & { readonly kind: 'adopt'; readonly folder: string })
  | (InSession<Spec> & {
      readonly kind: 'step';
      readonly from: SessionPoint;
      readonly committed: CommittedState;
      readonly work: StepWork;
    })
  | (InSession<Spec> & {
      readonly kind: 'commit';
      readonly carried: Carried;
      readonly from: SessionPoint;
      readonly committed: CommittedState;
      readonly root: string;
      readonly configDigest: string;
    })
  | { readonly kind: 'close'; readonly session: string };

export type TrainerResult = StepReport | CommitReport | null;

/** Tokens since the last message. */
export interface TrainerProgress {
  readonly tokens: number;
}
