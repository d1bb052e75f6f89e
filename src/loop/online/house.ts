// What the loop is made of. It is given all of it and closes only what it opens.

import type { LoopConfig } from '../../config/index.js';
import type { Engine } from '../../engine/index.js';
import type { Question } from '../../evaluation/index.js';
import type { RewardedRecord } from '../../reward/index.js';
import type { Checkpoint, RunSettings, Trainer } from '../../training/index.js';
import type { TrajectoryRecord, TrajectoryStore } from '../../trajectory/index.js';
import type { RolloutParts } from '../offline/lock-step-rollouts.js';
import type { GateSettings } from './gate/decide.js';
import type { Priority } from './priority.js';

export interface LoopHouse {
  readonly engine: Engine;
  readonly priority: Priority;
  readonly store: TrajectoryStore;
  /** Of training rollouts: with the trainer's limits on turns and observations. */
  readonly training: RolloutParts;
  /** Of the gate: as users' questions are answered. */
  readonly serving: RolloutParts;
  readonly topK: number;
  readonly settings: LoopSettings;
  readonly run: RunSettings;
  /** Of a rollout with the gold answers of its question. */
  readonly score: (record: TrajectoryRecord, goldenAnswers: readonly string[]) => RewardedRecord;
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
export const versionsOf = (folder: string): string => `${folder}/versions`;
