// POST /v1/feedback: what became of an answer, said at any later time.

import type { Request, RequestHandler } from 'express';
import { InvalidInputError, NotFoundError, UnavailableError } from '../../errors.js';
import type { FeedbackInput, FeedbackOutcome } from '../../trajectory/index.js';
import { LATE, within } from '../../util/within.js';
import type { AnswerStore, ServerContext } from '../context.js';
import type { FeedbackBody } from '../feedback/schema.js';
import { hasScope, type Identity, identityOf } from '../http/api-keys.js';
import { parseBody } from '../http/body.js';
import { invalidField, RequestError } from '../openai/request-error.js';

/** Feedback is acknowledged when it is on disk, or not at all. */
const TIMEOUT_MS = 5000;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,256}$/;

export function feedback(context: ServerContext): RequestHandler {
  return async (req, res) => {
    const { store } = context;
    if (store === null)
      throw new RequestError('route_not_found', 'nothing is stored here: there is no feedback');
    const idempotencyKey = idempotencyKeyOf(req);
    const body = await parseBody(req, 'feedback', context.bodies);
    const work = context.activity.begin();
    try {
      const { entry, repeated } = await add(store, inputOf(body, identityOf(res), idempotencyKey));
      res.json({
        id: entry.id,
        object: 'feedback',
        answer_id: entry.trajectoryId,
        created: Math.floor(entry.createdAt / 1000),
        source: { key: entry.keyId, role: entry.role },
        stored: true,
        repeated,
      });
    } finally {
      work.end();
    }
  };
}

function idempotencyKeyOf(req: Request): string | null {
  const key = req.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || !IDEMPOTENCY_KEY.test(key))
    throw invalidField(
      'idempotency-key',
      'idempotency-key: expected at most 256 printable characters without spaces',
    );
  return key;
}

function inputOf(body: FeedbackBody, identity: Identity, idempotencyKey: string | null): FeedbackInput {
  const { id, ...said } = body;
  return {
    ...said,
    trajectoryId: id,
    keyId: identity.keyId,
    role: hasScope(identity, 'admin') ? 'admin' : 'feedback',
    idempotencyKey,
  };
}

async function add(store: AnswerStore, input: FeedbackInput): Promise<FeedbackOutcome> {
  try {
    const outcome = await within(store.addFeedback(input), TIMEOUT_MS);
    if (outcome === LATE)
      throw new UnavailableError('the feedback is not stored yet; send it again with the same key');
    return outcome;
  } catch (error) {
    if (error instanceof NotFoundError) throw new RequestError('answer_not_found', error.message);
    if (error instanceof InvalidInputError) throw invalidField(error.param, error.message);
    throw error;
  }
}
