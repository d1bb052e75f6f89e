// A stretch of candidates on the same questions, which together may spend alpha once: which questions those are, when others take
// their place, and when fresh ones must confirm.

import type { LoopState } from '../state.js';
import type { GateSettings } from './decide.js';
import { type GateQuestion, type GateSlices, gateSlices } from './questions.js';

type Stretch = LoopState['stretch'];

/** Candidates on the same questions: of two more, one that is just as good could not pass. */
export const RENEWED_AFTER = 5;

/** The questions of a stretch as they are; fresh ones as many as confirm. */
export function slicesOf(
  stretch: Stretch,
  pool: readonly GateQuestion[],
  { questions }: Pick<GateSettings, 'questions'>,
): GateSlices {
  const { working, fresh } = gateSlices(pool, new Set(stretch.used), new Set(stretch.working), questions);
  return { working, fresh: fresh.slice(0, questions) };
}

export interface OpenStretch extends GateSlices {
  readonly stretch: Stretch;
}

/**
 * Those of the next candidate. After a few candidates their questions give way to others that no candidate has met: of these nothing
 * is known, so alpha is whole again, while on the old ones what is left of it soon lets nobody pass. What the next confirmation takes
 * is left for it; and publications go on being counted, so that a slide by small losses meets its confirmation all the same.
 */
export function openStretch(
  stretch: Stretch,
  pool: readonly GateQuestion[],
  gate: Pick<GateSettings, 'questions' | 'confirmEvery'>,
): OpenStretch {
  const { questions, confirmEvery } = gate;
  const { working, fresh } = gateSlices(pool, new Set(stretch.used), new Set(stretch.working), questions);
  const needed = confirmEvery > 0 ? 2 * questions : questions;
  if (stretch.attempts < RENEWED_AFTER || fresh.length < needed)
    return { stretch, working, fresh: fresh.slice(0, questions) };
  return {
    stretch: { ...stretch, attempts: 0, used: [...stretch.used, ...stretch.working] },
    working: fresh.slice(0, questions),
    fresh: fresh.slice(questions, 2 * questions),
  };
}

/** With the next publication, whoever makes it; where fresh questions are there, also of who passes after many others did not. */
export function mustConfirm(
  { publications, attempts }: Stretch,
  fresh: number,
  { confirmEvery, maxAttempts, questions }: GateSettings,
): boolean {
  if (confirmEvery === 0) return false;
  return publications + 1 >= confirmEvery || (attempts >= maxAttempts && fresh >= questions);
}
