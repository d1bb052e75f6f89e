// Where the next questions shall go.

import type { LoopTraffic } from './control.js';
import type { LoopSettings } from './house.js';
import type { LoopState } from './state.js';

/** @param nameOf  name under which the engine has a version; null is the base model */
export function trafficOf(
  { mode, exploreShare }: Pick<LoopSettings, 'mode' | 'exploreShare'>,
  { watch }: Pick<LoopState, 'watch'>,
  nameOf: (version: string) => string | null,
): LoopTraffic {
  const adapter = watch === null || watch.share >= 1 ? null : nameOf(watch.version);
  return {
    exploreShare: mode === 'logged' ? exploreShare : 0,
    canary:
      adapter === null || watch === null ? null : { adapter, version: watch.version, share: watch.share },
  };
}
