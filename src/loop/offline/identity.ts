// What a run is: the settings and inputs that decide its outcome on a machine.

import type { RunSettings } from '../../training/index.js';
import type { RunIdentity } from './run-folder.js';

/** Settings that may change when a run goes on: they say how far it goes and how it is kept, not what a step does. */
const FREE = ['steps', 'epochs', 'checkpointEvery', 'keepCheckpoints', 'maxRejectedShare'] as const;

export function runIdentity(
  settings: RunSettings,
  inputs: Readonly<Record<string, string | number | null>>,
): RunIdentity {
  const free: readonly string[] = FREE;
  const fixed = Object.entries(settings).filter(([key]) => !free.includes(key));
  // Without a target the horizon decides nothing.
  const klHorizon = settings.klTarget === null ? null : settings.klHorizon;
  return { ...Object.fromEntries(fixed), klHorizon, ...inputs };
}
