// What the loop is made of. It is given all of it and closes only what it opens.

import type { LoopConfig } from '../../config/index.js';
import type { Engine, LoadOptions } from '../../engine/index.js';
import type { Question } from '../../evaluation/index.js';
import type { Checkpoint, RunSettings, Trainer } from '../../training/index.js';
import type { TrajectoryStore } from '../../trajectory/index.js';
import type { RolloutParts } from '../offline/lock-step-rollouts.js';
import type { GateSettings } from './gate/decide.js';
import type { Priority } from './priority.js';
import type { GradeAnswers } from './rewards.js';
import type { SearchOutages } from './search-outages.js';

/** How the engine gets what is not published: one name with ever new content, which users are never answered by. */
export const UNPUBLISHED: LoadOptions = { replace: true, isInternal: true };

export interface LoopHouse {
  readonly engine: Engine;
  readonly priority: Priority;
  readonly store: TrajectoryStore;
  /** Of training rollouts: as users' questions are answered, unless `training` has sizes of its own. */
  readonly training: RolloutParts;
  /** Of the gate: as users' questions are answered. */
  readonly serving: RolloutParts;
  readonly topK: number;
  /** Of the searches of both. */
  readonly outages: SearchOutages;
  readonly settings: LoopSettings;
  readonly run: RunSettings;
  /** What answers are worth. */
  readonly grade: GradeAnswers;
  /** A judge tells of answers that nobody labelled. */
  readonly canJudge: boolean;
  /** A judge or a vote does. */
  readonly learnsUnlabelled: boolean;
  readonly gate: GateSettings;
  /** Set aside by an admin; never trained on. */
  readonly gateQuestions: readonly Question[];
  /** Folder of the loop: checkpoints/ and versions/. */
  readonly folder: string;
  readonly configDigest: string;
  /** Cell that the trainer looks at before each micro-batch. */
  readonly pause: Int32Array;
  openTrainer(from: Checkpoint | null): Promise<Trainer>;
  readonly onNote: (line: string, details?: Readonly<Record<string, unknown>>) => void;
  readonly onFailure: (error: Error, doing: string) => void;
}

export type LoopSettings = LoopConfig;

/** Checkpoints of the trainer, and published adapters. */
export const checkpointsOf = (folder: string): string => `${folder}/checkpoints`;
export const gateAnswersFile = (folder: string): string => `${folder}/gate-answers.jsonl`;
export const versionsOf = (folder: string): string => `${folder}/versions`;
