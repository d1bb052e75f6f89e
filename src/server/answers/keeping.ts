// Whether the records of a request are kept, and what is said of them.

import type { Keeping, RolloutRequest } from '../../rollout/index.js';
import type { FeedbackInput, RecordNotes } from '../../trajectory/index.js';
import type { ServerContext } from '../context.js';
import { assertScope, hasScope, type Identity } from '../http/api-keys.js';
import { invalidField } from '../openai/request-error.js';
import type { ChatBody } from '../openai/schema/chat.js';

const GOLD = 'searchloop.golden_answers';

/**
 * What each rollout of a request says of its record; null: nothing is kept.
 * @param requestId  id of the whole answer
 * @throws {RequestError} gold answers by a key that may not label, or for an answer that is not kept
 */
export function keepingOf(
  context: Pick<ServerContext, 'store' | 'keepByDefault'>,
  body: ChatBody,
  identity: Identity,
  requestId: string,
): (request: RolloutRequest) => Keeping | null {
  const isKept = context.store !== null && (body.store ?? context.keepByDefault);
  const golds = body.searchloop?.golden_answers;
  if (golds !== undefined) {
    assertScope(identity, 'feedback', GOLD);
    if (!isKept) throw invalidField(GOLD, `${GOLD}: this answer is not kept; send "store": true`);
  }
  if (!isKept) return () => null;
  const notes: Omit<RecordNotes, 'messages' | 'forceAnswer'> = {
    source: 'serve',
    askedToStore: body.store === true,
    requestId,
    userKey: body.safety_identifier ?? body.user ?? null,
    keyId: identity.keyId,
    originId: null,
  };
  return (request) => ({
    notes: { ...notes, messages: request.messages, forceAnswer: request.forceAnswer ?? false },
    feedback: golds === undefined ? null : goldFeedback(request.id ?? requestId, golds, identity),
  });
}

function goldFeedback(
  trajectoryId: string,
  goldAnswers: readonly string[],
  identity: Identity,
): FeedbackInput {
  return {
    trajectoryId,
    keyId: identity.keyId,
    role: hasScope(identity, 'admin') ? 'admin' : 'request',
    idempotencyKey: null,
    reward: null,
    rating: null,
    goldAnswers,
    preferredOver: null,
    comment: null,
  };
}
