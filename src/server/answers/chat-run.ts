// One chat request on its way: what all three ways out (JSON, SSE, WebSocket) begin with.

import { randomBytes } from 'node:crypto';
import { CancelledError, RuntimeError } from '../../errors.js';
import type { MethodName, RolloutEvent } from '../../rollout/index.js';
import { type Policy, requireIndex, requirePolicy, type ServerContext } from '../context.js';
import type { Identity } from '../http/api-keys.js';
import { systemFingerprint } from '../openai/fingerprint.js';
import { resolveModel } from '../openai/model-name.js';
import { checkTokenIds, rolloutRequestOf } from '../openai/rollout-request.js';
import type { ChatBody } from '../openai/schema/chat.js';
import { keepingOf } from './keeping.js';
import { type ChoiceEvent, mergeRollouts } from './merge.js';
import { assertPromptFits } from './prompt-length.js';
import { explored, mayExplore, tried } from './traffic.js';

/** What stands at the top of every chunk and of the completion. */
export interface CompletionHead {
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** As the client spelt it. */
  readonly model: string;
}

export interface ChatRun {
  readonly head: CompletionHead;
  readonly body: ChatBody;
  readonly method: MethodName;
  readonly policy: Policy;
  /** Adapter version that the rollouts ask for; the record of a rollout says which it got. */
  readonly adapterVersion: string;
  readonly fingerprint: (adapterVersion: string) => string;
  readonly events: AsyncGenerator<ChoiceEvent, void, void>;
}

const SEARCHING: readonly MethodName[] = ['search-r1', 'rag'];

/**
 * Checks a body against the parts that are there and sets its rollouts up; they begin with the first event asked for.
 * @throws {RequestError} the model is not there, not ready, or the prompt is too long
 */
export function startChat(
  context: ServerContext,
  body: ChatBody,
  signal: AbortSignal,
  identity: Identity,
): ChatRun {
  const policy = requirePolicy(context.parts);
  const { engine } = policy;
  const traffic = context.loop()?.traffic() ?? null;
  const target = tried(resolveModel(body.model, engine, context.liveMethods), traffic);
  const snapshotId = SEARCHING.includes(target.method) ? requireIndex(context.parts).snapshotId : null;
  checkTokenIds(body, engine.info);
  assertPromptFits(body, policy);

  const id = `chatcmpl-${randomBytes(12).toString('hex')}`;
  const frame = { body, target, info: engine.info, rollout: context.rollout, id };
  const isExplored = mayExplore(body, target) && Math.random() < (traffic?.exploreShare ?? 0);
  const keep = keepingOf(context, body, identity, id);
  const events = mergeRollouts(
    (choice, own) => {
      const request = rolloutRequestOf(frame, choice);
      const kept = { ...request, keeping: keep(request), signal: own };
      return policy.runner.run(isExplored ? explored(kept) : kept);
    },
    { count: body.n ?? 1, concurrency: engine.info.maxSequences, signal },
  );
  return {
    head: { id, created: Math.floor(Date.now() / 1000), model: body.model },
    body,
    method: target.method,
    policy,
    adapterVersion: target.adapterVersion,
    fingerprint: (version) =>
      systemFingerprint({ engine: engine.info.fingerprint, version, snapshotId, rollout: context.rollout }),
    events: checked(events, body.n ?? 1, signal),
  };
}

/** A rollout must end with `done`, and none may end as cancelled unless we asked for it. */
async function* checked(
  events: AsyncGenerator<ChoiceEvent, void, void>,
  count: number,
  signal: AbortSignal,
): AsyncGenerator<ChoiceEvent, void, void> {
  let done = 0;
  for await (const item of events) {
    if (isCancelled(item.event)) {
      signal.throwIfAborted();
      throw new CancelledError('the rollout was cancelled by the server');
    }
    if (item.event.type === 'done') done += 1;
    yield item;
  }
  if (done !== count) throw new RuntimeError(`expected ${count} rollouts to end with "done", ${done} did`);
}

const isCancelled = (event: RolloutEvent): boolean => event.type === 'done' && event.finish === 'cancelled';
