// What a method is: a prompt, a way to drive the session, and how it ended. One file a method.

import type { TrajectoryStop } from '../../trajectory/index.js';
import type { MethodName, RolloutEvent, RolloutFinish } from '../events.js';
import type { PromptSet } from '../prompt-file.js';
import type { Session } from '../session.js';

export interface Ending {
  readonly stop: TrajectoryStop;
  readonly finish: RolloutFinish;
}

export interface Method {
  readonly name: MethodName;
  readonly searches: boolean;
  /** Digest of the prompt file; `none` for a method that adds no text of ours. */
  promptDigest(prompts: PromptSet): string;
  /** Yields everything but `done`. */
  run(session: Session): AsyncGenerator<RolloutEvent, Ending>;
}

export const CANCELLED: Ending = { stop: 'cancelled', finish: 'cancelled' };
export const LENGTH: Ending = { stop: 'length', finish: 'length' };
export const ANSWERED: Ending = { stop: 'answer', finish: 'stop' };
