// The loop of a server or of `loop run --once`, put together from what is open already.

import { availableParallelism } from 'node:os';
import { type Config, dataFolder, homeFolder } from '../config/index.js';
import { type LoopOptions, loopFolder, type OpenedLoop, openLoop, type Priority } from '../loop/index.js';
import type { Retriever } from '../retrieval/index.js';
import { loadPrompts } from '../rollout/index.js';
import type { TrajectoryStore } from '../trajectory/index.js';
import type { PolicyModel } from './application.js';

export function openConfiguredLoop(
  config: Config,
  house: {
    readonly policy: PolicyModel;
    readonly priority: Priority;
    readonly retriever: Retriever;
    readonly store: TrajectoryStore;
    /** The live adapter as it is configured, where the engine may have another one by now. */
    readonly startsWith?: LoopOptions['startsWith'];
  },
  hooks: Pick<LoopOptions, 'onNote' | 'onFailure' | 'onWait' | 'signal'>,
): Promise<OpenedLoop> {
  const { policy, priority, retriever, store, startsWith } = house;
  const { engine, encoding } = policy;
  return openLoop({
    ...hooks,
    config,
    folder: loopFolder(dataFolder(config)),
    home: homeFolder(config),
    engine,
    priority,
    parts: { retriever, tokenizer: encoding.tokenizer, encoding, prompts: loadPrompts(config.rollout) },
    store,
    ...(startsWith === undefined ? {} : { startsWith }),
    threads: availableParallelism(),
  });
}
