// Runs a request by its method and closes it: one `done` event, one record, the slot freed on every way out.

import { randomUUID } from 'node:crypto';
import { CancelledError, ConfigError, InvalidInputError, UnavailableError } from '../errors.js';
import type { TrajectoryRecord } from '../trajectory/index.js';
import { citationsOf } from './citations.js';
import { questionOf } from './conversation.js';
import { type Encoding, inlineEncoding } from './encoding/encoding.js';
import type { Rollout, RolloutEvent, RolloutRequest } from './events.js';
import { METHODS } from './methods/index.js';
import { CANCELLED, type Ending, type Method } from './methods/method.js';
import { keepRecord, type RecordKeeping } from './record-keeping.js';
import { createSession, ledgerOf, type RolloutHouse, type Session } from './session.js';

export interface RolloutRunnerOptions extends Omit<RolloutHouse, 'encoding'>, RecordKeeping {
  /** Default: all on this thread. */
  readonly encoding?: Encoding;
}

export interface RolloutRunner {
  /**
   * Starts when first read. Throws what the engine throws, and
   * {InvalidInputError} for an unknown method or a conversation without a user message,
   * {ContextLengthError} for a prompt that does not fit,
   * {UnavailableError} for a searching method without an index,
   * {CancelledError} when the signal fires before a slot was taken; after that the rollout ends with `done`
   * and finish `cancelled`.
   */
  run(request: RolloutRequest): Rollout;
}

/** @throws {ConfigError} a fixed observation of a prompt file is longer than `rollout.observationTokens` */
export function createRolloutRunner(options: RolloutRunnerOptions): RolloutRunner {
  checkObservations(options);
  const house = { ...options, encoding: options.encoding ?? inlineEncoding(options.tokenizer) };
  return { run: (request) => runRollout(house, options, request) };
}

function checkObservations({ prompts, tokenizer, config }: RolloutRunnerOptions): void {
  const { prefix, suffix, corrective, failure, budget, forcedAnswer } = prompts.searchR1.observation;
  const fixed = {
    'prefix and suffix': prefix + suffix,
    corrective,
    failure,
    'budget and forcedAnswer': budget + forcedAnswer,
  };
  for (const [name, text] of Object.entries(fixed)) {
    const tokens = tokenizer.encodePlain(text).length;
    if (tokens > config.observationTokens)
      throw new ConfigError(
        `prompt of search-r1: ${name} take ${tokens} tokens, but rollout.observationTokens is ${config.observationTokens}`,
      );
  }
}

async function* runRollout(house: RolloutHouse, keeping: RecordKeeping, request: RolloutRequest): Rollout {
  const method = METHODS[request.method];
  if (method === undefined)
    throw new InvalidInputError(
      `method: expected one of ${Object.keys(METHODS).join(', ')}, got "${request.method}"`,
      'method',
    );
  if (method.searches && house.retriever === null)
    throw new UnavailableError(`method "${method.name}" searches, but no index is loaded`);
  const begun = {
    id: request.id ?? `traj-${randomUUID()}`,
    createdAt: Date.now(),
    indexSnapshotId: method.searches && house.retriever !== null ? house.retriever.snapshotId : null,
  };
  const session = createSession(house, request);
  // What holds if the reader leaves early.
  let ending: Ending | null = CANCELLED;
  try {
    ending = yield* driveMethod(method, session);
    session.ledger?.close();
    const record = recordOf(session, method, begun, ending);
    const stored = keepRecord(record, request, keeping);
    const done = doneEvent(session, ending, record, await stored);
    ending = null;
    yield done;
  } catch (error) {
    ending = null;
    throw error;
  } finally {
    session.ledger?.close();
    if (ending !== null && session.ledger !== null)
      void keepRecord(recordOf(session, method, begun, ending), request, keeping);
  }
}

/** A failure after the caller asked to stop is the stop itself. */
async function* driveMethod(method: Method, session: Session): AsyncGenerator<RolloutEvent, Ending> {
  try {
    return yield* method.run(session);
  } catch (error) {
    const cancelled = error instanceof CancelledError || session.request.signal?.aborted === true;
    if (!cancelled) throw error;
    if (session.ledger === null) throw error instanceof CancelledError ? error : new CancelledError();
    return CANCELLED;
  }
}

function recordOf(
  session: Session,
  method: Method,
  begun: Pick<TrajectoryRecord, 'id' | 'createdAt' | 'indexSnapshotId'>,
  ending: Ending,
): TrajectoryRecord {
  const { request, house, counts } = session;
  const { builder, forced } = ledgerOf(session);
  const answer = session.fallback ? '' : session.answer;
  return builder.build({
    ...begun,
    method: method.name,
    promptTemplateDigest: method.promptDigest(house.prompts),
    modelDigest: house.generator.info.modelDigest,
    sampling: {
      ...request.sampling,
      maxTokens: request.maxTokens ?? null,
      stop: request.stop ?? [],
      stopTokenIds: request.stopTokenIds ?? [],
      ignoreEos: request.ignoreEos ?? false,
      actionBudget: request.actionBudget ?? house.config.actionBudget,
      passages: request.topK ?? house.config.topK,
    },
    seed: request.seed ?? null,
    groupId: request.groupId ?? null,
    question: questionOf(request.messages),
    answer: ending.stop === 'answer' || answer !== '' ? answer : null,
    stop: ending.stop,
    validActions: counts.validActions,
    invalidActions: counts.invalidActions,
    forced,
  });
}

function doneEvent(
  session: Session,
  ending: Ending,
  record: TrajectoryRecord,
  stored: boolean | null,
): RolloutEvent {
  const { sequence, promptTokens, completionTokens, injectedTokens } = ledgerOf(session);
  return {
    type: 'done',
    answer: session.answer,
    finish: ending.finish,
    citations: session.fallback ? [] : citationsOf(session.answer, session.seen),
    usage: {
      promptTokens: promptTokens + injectedTokens,
      cachedTokens: sequence.cachedTokens,
      completionTokens,
      reasoningTokens: session.counts.reasoningTokens,
      injectedTokens,
      searches: record.searches.length,
    },
    record,
    stored,
  };
}
