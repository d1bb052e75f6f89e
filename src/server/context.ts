// What the server is given: the parts that answer, as they stand now. Parts load and may break while the
// server is up, so each is asked for anew by every request.

import type { Config, RolloutConfig, ServerConfig } from '../config/index.js';
import type { Generator } from '../engine/index.js';
import type { LoopControl } from '../loop/index.js';
import type { Retriever } from '../retrieval/index.js';
import type { MethodName, Rollout, RolloutRequest } from '../rollout/index.js';
import type { Logger } from '../telemetry/index.js';
import type { Tokenizer } from '../tokenizer/index.js';
import type { TrajectoryStore } from '../trajectory/index.js';
import type { Activity } from './activity.js';
import type { BodyParser } from './json/body-parser.js';
import { RequestError, type WireCode } from './openai/request-error.js';

export interface RolloutRunner {
  /** @see RolloutEvent; failures before the first event are thrown by the first `next()` */
  run(request: RolloutRequest): Rollout;
}

/** The policy side: the model and what runs rollouts on it. */
export interface Policy {
  readonly runner: RolloutRunner;
  readonly engine: Pick<Generator, 'info' | 'listAdapters' | 'liveAdapter' | 'stats'>;
  readonly tokenizer: Pick<Tokenizer, 'tokenBytes' | 'minimumTokens'>;
}

export type Part<T> =
  | { readonly state: 'ready'; readonly value: T }
  | { readonly state: 'loading' | 'broken'; readonly reason: string };

export interface ServerParts {
  policy(): Part<Policy>;
  index(): Part<Retriever>;
}

/** What the server uses of the store. */
export type AnswerStore = Pick<TrajectoryStore, 'addFeedback' | 'health' | 'keys'>;

export interface ServerOptions {
  readonly config: Pick<Config, 'server' | 'rollout' | 'store' | 'model'>;
  readonly parts: ServerParts;
  /** Absent: nothing is kept, and there is no feedback. */
  readonly store?: AnswerStore | undefined;
  /** The loop, once it runs; absent: there is none. */
  readonly loop?: (() => LoopControl | null) | undefined;
  /** Why a loop that should run does not; null: it runs, or none should. */
  readonly loopTrouble?: (() => string | null) | undefined;
  readonly logger: Logger;
}

/** What routes share. */
export interface ServerContext {
  readonly settings: ServerConfig;
  readonly rollout: RolloutConfig;
  /** Methods that the live adapter answers. */
  readonly liveMethods: readonly MethodName[];
  readonly parts: ServerParts;
  readonly store: AnswerStore | null;
  readonly loop: () => LoopControl | null;
  readonly loopTrouble: () => string | null;
  readonly keepByDefault: boolean;
  readonly logger: Logger;
  readonly activity: Activity;
  readonly bodies: BodyParser;
  /** Seconds since 1970; when the server was made. */
  readonly startedAt: number;
}

/** @throws {RequestError} 503 while the model loads or when it is broken */
export function requirePolicy(parts: ServerParts): Policy {
  return requirePart(parts.policy(), 'the model', 'model_loading');
}

/** @throws {RequestError} 503 while the index loads or when it is broken */
export function requireIndex(parts: ServerParts): Retriever {
  return requirePart(parts.index(), 'the index', 'index_loading');
}

function requirePart<T>(part: Part<T>, name: string, code: WireCode): T {
  if (part.state === 'ready') return part.value;
  throw new RequestError(code, `${name} is ${part.state}: ${part.reason}`);
}
