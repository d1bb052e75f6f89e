// The states of the loop and what leads from one to the next: one table, and nothing moves but by it.

import { InvalidInputError } from '../../errors.js';

export const LOOP_STATES = ['waiting', 'rolling', 'training', 'gating', 'publishing', 'paused'] as const;
export type LoopStateName = (typeof LOOP_STATES)[number];

/**
 * `begin`: enough labelled questions; `rolled`: all rollouts of the step are there; `stepped`: the step is committed;
 * `due`: a candidate shall be judged; `passed`, `refused`, `short`: the gate's word (`short`: too few questions);
 * `published`: the new version is live; `failed`: the work broke off and is begun anew; `collapsed`: the guard spoke.
 */
export type LoopEvent =
  | 'begin'
  | 'rolled'
  | 'stepped'
  | 'due'
  | 'passed'
  | 'refused'
  | 'short'
  | 'published'
  | 'failed'
  | 'collapsed'
  | 'pause'
  | 'resume';

export const TRANSITIONS: Readonly<Record<LoopStateName, Partial<Record<LoopEvent, LoopStateName>>>> = {
  waiting: { begin: 'rolling', due: 'gating', pause: 'paused' },
  rolling: { rolled: 'training', failed: 'waiting', pause: 'paused' },
  training: { stepped: 'waiting', failed: 'waiting', collapsed: 'paused', pause: 'paused' },
  gating: { passed: 'publishing', refused: 'waiting', short: 'waiting', failed: 'waiting', pause: 'paused' },
  publishing: { published: 'waiting', failed: 'waiting', pause: 'paused' },
  paused: { resume: 'waiting', pause: 'paused' },
};

/** @throws {InvalidInputError} the table has no such transition */
export function nextState(state: LoopStateName, event: LoopEvent): LoopStateName {
  const next = TRANSITIONS[state][event];
  if (next === undefined)
    throw new InvalidInputError(
      `the loop is ${state}; expected one of ${Object.keys(TRANSITIONS[state]).join(', ')}, got "${event}"`,
    );
  return next;
}
