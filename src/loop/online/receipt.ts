// The receipt of a version: where it comes from and why it was let out.

import type { GateTest } from './gate/decide.js';

export interface Receipt {
  readonly version: string;
  readonly parent: string;
  /** Versions between the parent and this one, oldest first; each has its own records in the store's lineage. */
  readonly steps: readonly string[];
  readonly trajectoryIds: readonly string[];
  readonly seeds: readonly number[];
  readonly configDigest: string;
  readonly indexSnapshotId: string | null;
  readonly metrics: Readonly<Record<string, number>>;
  readonly gate: readonly GateTest[];
  readonly publishedBy: string;
  /** API key that ordered the step which led to it; null: nobody did. */
  readonly orderedBy: string | null;
  readonly publishedAt: number;
  /** Where it was taken back: why, and which API key ordered it (null: the loop did it for what users said). */
  readonly rolledBack?: { readonly reason: string; readonly by: string | null; readonly at: number };
}

/** Kept by the store with each step: what is in it beside parent and records. */
export interface StepReceipt {
  readonly kind: 'loop-step';
  readonly step: number;
  readonly trainerStep: number;
  readonly seed: number;
  readonly state: string;
  readonly checkpoint: string;
  readonly configDigest: string;
  readonly indexSnapshotId: string | null;
  readonly mode: 'replay' | 'logged';
  /** Of the records, those that were there before and were learned from as they are. */
  readonly asGiven: readonly string[];
  /** Those whose questions were answered by rule, and learned so; absent in receipts of earlier builds. */
  readonly shown?: readonly string[];
  readonly metrics: Readonly<Record<string, number>>;
}
