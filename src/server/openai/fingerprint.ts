import type { RolloutConfig } from '../../config/index.js';
import { canonicalJson, sha256Hex } from '../../util/digest.js';

/**
 * Names everything but the request that decides the text for a seed: sampler, model and precision (the
 * engine's own fingerprint), adapter version, index content (null where nothing is searched) and rollout settings.
 */
export function systemFingerprint(parts: {
  readonly engine: string;
  readonly version: string;
  readonly snapshotId: string | null;
  readonly rollout: RolloutConfig;
}): string {
  return `fp_${sha256Hex(canonicalJson(parts)).slice(0, 12)}`;
}
