// One turn of a method whose policy acts by tags, counted as a valid or an invalid action.

import type { RolloutEvent } from '../events.js';
import { policyTurn, type TurnOutcome } from '../policy-turn.js';
import { createProtocolReader } from '../protocol-reader.js';
import type { Session } from '../session.js';
import { beginsInThought, finalEnding } from './endings.js';
import { ANSWERED, type Ending } from './method.js';

export interface ProtocolTurnOutcome {
  readonly outcome: TurnOutcome;
  /** Set where the rollout is over. */
  readonly ending: Ending | null;
}

/**
 * Samples one turn and counts its action. An answer that was shown cannot be taken back: where it turns out
 * not to be valid (never closed, or tags nested in it), the rollout ends with what was shown.
 */
export async function* protocolTurn(
  session: Session,
  options: { readonly search: boolean },
): AsyncGenerator<RolloutEvent, ProtocolTurnOutcome> {
  const { config } = session.house;
  const outcome = yield* policyTurn(session, {
    reader: createProtocolReader({
      search: options.search,
      live: session.request.forceAnswer === true,
      queryTokens: config.queryTokens,
      thinking: beginsInThought(session),
    }),
    maxTokens: config.turnTokens,
    trim: true,
    reasoning: 'rest',
  });
  const final = finalEnding(outcome);
  if (final !== null) return { outcome, ending: final };
  const valid = outcome.action.kind !== 'invalid';
  session.counts[valid ? 'validActions' : 'invalidActions'] += 1;
  if (outcome.action.kind === 'answer') return { outcome, ending: ANSWERED };
  if (session.answer === '') return { outcome, ending: null };
  return { outcome, ending: { stop: 'stop', finish: outcome.reason === 'limit' ? 'length' : 'stop' } };
}
