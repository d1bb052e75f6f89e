// How turns end a rollout, and the answer that the environment opens when none came.

import type { RolloutEvent } from '../events.js';
import { policyTurn, type TurnOutcome } from '../policy-turn.js';
import type { ForcedForm } from '../prompt-file.js';
import { ledgerOf, type Session } from '../session.js';
import { createWholeReader } from '../whole-reader.js';
import { ANSWERED, CANCELLED, type Ending, LENGTH } from './method.js';

/** The ending of a turn that no method can go on from; null for the others. */
export function finalEnding(outcome: TurnOutcome): Ending | null {
  if (outcome.reason === 'cancelled') return CANCELLED;
  if (outcome.reason === 'user_stop') return { stop: 'stop', finish: 'stop' };
  if (outcome.reason === 'exhausted' || outcome.reason === 'context') return LENGTH;
  return null;
}

/** Only the first turn can follow a `<think>` that the chat template left open. */
export function beginsInThought(session: Session): boolean {
  const ledger = ledgerOf(session);
  return ledger.opensInThought && ledger.completionTokens === 0;
}

/** A turn whose whole text is the answer: over with a closing tag or end token, or cut by its limit. */
export async function* wholeTurn(
  session: Session,
  options: { readonly tags: 'all' | 'think'; readonly maxTokens: number },
): AsyncGenerator<RolloutEvent, Ending> {
  const outcome = yield* policyTurn(session, {
    reader: createWholeReader({ tags: options.tags, thinking: beginsInThought(session) }),
    maxTokens: options.maxTokens,
    trim: options.tags === 'all',
    reasoning: 'blocks',
  });
  return finalEnding(outcome) ?? (outcome.reason === 'limit' ? LENGTH : ANSWERED);
}

/**
 * Rule 11: the budget ended without an answer. Serving opens one, and the policy completes it; evaluation and
 * training end here.
 */
export async function* forceAnswer(session: Session, form: ForcedForm): AsyncGenerator<RolloutEvent, Ending> {
  if (session.request.forceAnswer !== true) return { stop: 'budget', finish: 'length' };
  const { tokenizer, config } = session.house;
  const opening = tokenizer.encodePlain(`${form.budget}${form.forcedAnswer}`);
  if (session.allowance() < 1 || ledgerOf(session).observe('forced', opening) === null) return LENGTH;
  const ending = yield* wholeTurn(session, { tags: 'all', maxTokens: config.turnTokens });
  return yield* neverEmpty(session, form, ending);
}

/** An answer that the policy left empty is shown as the prompt file's sentence, in serving only. */
export async function* neverEmpty(
  session: Session,
  form: ForcedForm,
  ending: Ending,
): AsyncGenerator<RolloutEvent, Ending> {
  const left = session.answer === '' && ending.stop === 'answer' && session.request.forceAnswer === true;
  if (left) {
    session.fallback = true;
    session.answer = form.noAnswer;
    yield { type: 'answer.delta', text: form.noAnswer, tokens: [] };
  }
  return ending;
}
