// What others see of a running loop.

import type { VersionList, VersionReceipt } from './read-receipts.js';
import type { LoopStatus } from './status.js';

/** How the loop wants questions answered that name neither version nor temperature. */
export interface LoopTraffic {
  /** Share that is sampled at temperature 1 and marked, so that something can be learned from it. */
  readonly exploreShare: number;
  /** A new version on trial, and its share; null: there is none. */
  readonly canary: { readonly adapter: string; readonly version: string; readonly share: number } | null;
}

/** What can be asked of a running loop. `by` is the API key that orders it: receipts and news name it. */
export interface LoopControl {
  status(): LoopStatus;
  /** Why it learns nothing though nobody told it so: it paused itself, or waits for what it does not get on without. */
  trouble(): string | null;
  versions(): Promise<VersionList>;
  /** @throws {NotFoundError} it was never published */
  receipt(version: string): Promise<VersionReceipt>;
  traffic(): LoopTraffic;
  pause(reason: string, by?: string): Promise<LoopStatus>;
  resume(): Promise<LoopStatus>;
  /** One step at once, though fewer questions are there than a step waits for, then the gate where it is due. */
  step(by?: string): Promise<LoopStatus>;
  /** Goes back to the version before, or to one that was published. @throws {NotFoundError} there is none */
  rollback(reason: string, version?: string, by?: string): Promise<LoopStatus>;
}
