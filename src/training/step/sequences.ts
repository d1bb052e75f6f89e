// What a step learns from: one sequence with the tokens that count and, for rollouts, its reward and origin.

import type { ObjectiveSequence } from '../algorithms/index.js';

export interface TrainingSequence {
  readonly id: string;
  /** [T] */
  readonly tokenIds: Int32Array;
  /** [T], 1 on tokens that the policy answers for; entry 0 is 0. */
  readonly lossMask: Uint8Array;
  /** [T], 1 on tokens that a search brought. */
  readonly environmentMask: Uint8Array;
  /** null: given, not sampled. */
  readonly rollout: RolloutFacts | null;
}

/** What is known of a rollout beside its tokens. */
export interface RolloutFacts {
  readonly groupId: string;
  readonly reward: number;
  /** Expected reward, for a group of one. */
  readonly baseline?: number;
  /** Version that sampled it. */
  readonly version: string;
  /** Commits between that one and the policy that is trained; infinite where it is none of the trainer's. */
  readonly staleness: number;
  /** [T], nats, as the engine reported them; null: no importance weights. */
  readonly engineLogprobs: Float32Array | null;
  readonly searches: number;
  readonly validActions: number;
  readonly invalidActions: number;
}

/** Indices of the tokens that the policy answers for. */
export function sampledTokens(sequence: Pick<TrainingSequence, 'lossMask'>): number[] {
  const indices: number[] = [];
  for (let t = 1; t < sequence.lossMask.length; t++) if (sequence.lossMask[t] === 1) indices.push(t);
  return indices;
}

/** A given trajectory as an objective takes it. */
export function supervisedSequence(sequence: TrainingSequence): ObjectiveSequence {
  const { id, lossMask, environmentMask } = sequence;
  return { lossMask, environmentMask, groupId: id, reward: 0 };
}
