// What a loop is opened with.

import type { Config } from '../../config/index.js';
import type { Engine } from '../../engine/index.js';
import type { TrajectoryStore } from '../../trajectory/index.js';
import type { RolloutParts } from '../offline/lock-step-rollouts.js';
import type { GateSettings } from './gate/decide.js';
import type { LoopHouse } from './house.js';
import type { Priority } from './priority.js';

export interface LoopOptions {
  readonly config: Config;
  /** Folder of the loop's own, in the data folder. */
  readonly folder: string;
  /** Of `homeFolder(config)`. */
  readonly home: string;
  readonly engine: Engine;
  /** What the loop begins with: the live adapter as it is configured; by default the engine's live one. */
  readonly startsWith?: Engine['liveAdapter'];
  readonly priority: Priority;
  readonly parts: Omit<RolloutParts, 'config'>;
  readonly store: TrajectoryStore;
  /** Threads of the trainer where the configuration says 0. */
  readonly threads: number;
  /** Own limits of the gate, for tests; the configuration's otherwise. */
  readonly gate?: Partial<GateSettings>;
  /** Other rewards than the configured ones. */
  readonly grade?: LoopHouse['grade'];
  readonly onNote: LoopHouse['onNote'];
  readonly onFailure: LoopHouse['onFailure'];
  /** The folder is another process's, which may live; the version that is live by the store is live here too, where it can be. */
  readonly onWait?: (reason: string) => void;
  readonly signal?: AbortSignal;
}
