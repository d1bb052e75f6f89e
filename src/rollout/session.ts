// One rollout while it runs: its prompt, its ledger of tokens, its searches and what was shown. Methods drive
// it; it knows no method.

import type { RolloutConfig } from '../config/index.js';
import type { Generator } from '../engine/index.js';
import { IntegrityError, UnavailableError } from '../errors.js';
import type { Passage, Retriever } from '../retrieval/index.js';
import type { ChatMessage, Tokenizer } from '../tokenizer/index.js';
import type { Encoding } from './encoding/encoding.js';
import type { RolloutEvent, RolloutRequest } from './events.js';
import { type Ledger, openLedger } from './ledger.js';
import type { PromptSet } from './prompt-file.js';
import { createSearcher, type SearchOutcome } from './retrieval-step.js';

/** What rollouts are made of. */
export interface RolloutHouse {
  readonly generator: Generator;
  /** null where nothing can be searched: methods that search are refused. */
  readonly retriever: Retriever | null;
  readonly tokenizer: Tokenizer;
  /** Encodes what may be long. */
  readonly encoding: Encoding;
  readonly config: RolloutConfig;
  readonly prompts: PromptSet;
  /** Pause before the second try of a failed search; it doubles. Default 200. */
  readonly retryDelayMs?: number;
}

export interface Session {
  readonly request: RolloutRequest;
  readonly house: RolloutHouse;
  /** null until `open`. */
  readonly ledger: Ledger | null;
  readonly counts: SessionCounts;
  /** Joined answer deltas. */
  answer: string;
  /** The answer shown is the prompt file's sentence, not the policy's. */
  fallback: boolean;
  /** The last characters of what was read into each channel. */
  readonly shownTail: Record<'reasoning' | 'answer', string>;
  /** Passages that the policy saw, one list a search. */
  readonly seen: (readonly Passage[])[];
  /** Ids of the prompt; throws {ContextLengthError} when they leave no room for a token. */
  encodePrompt(messages: readonly ChatMessage[]): Promise<number[]>;
  /** Takes a slot and appends the prompt. */
  open(promptIds: readonly number[]): Promise<Ledger>;
  /** Tokens that the request still allows to be sampled. */
  allowance(): number;
  /** Searches, with the events that tell of it. */
  search(query: string): AsyncGenerator<RolloutEvent, SearchOutcome>;
  /** Records a search whose passages stand in the token range [start, end). */
  recordSearch(outcome: SearchOutcome, range: readonly [number, number], seen: readonly Passage[]): void;
}

/** What a session counts beside its tokens. */
export interface SessionCounts {
  reasoningTokens: number;
  validActions: number;
  invalidActions: number;
}

/** The ledger of a session that took its slot. */
export function ledgerOf(session: Session): Ledger {
  if (session.ledger === null) throw new IntegrityError('the rollout has no sequence yet');
  return session.ledger;
}

export function createSession(house: RolloutHouse, request: RolloutRequest): Session {
  const { generator, tokenizer, encoding } = house;
  const search = createSearch(house, request);
  let ledger: Ledger | null = null;
  const session: Session = {
    request,
    house,
    get ledger() {
      return ledger;
    },
    counts: { reasoningTokens: 0, validActions: 0, invalidActions: 0 },
    answer: '',
    fallback: false,
    shownTail: { reasoning: '', answer: '' },
    seen: [],
    encodePrompt: (messages) => encoding.prompt(messages, generator.info.maxSequenceTokens),
    async open(promptIds) {
      ledger = await openLedger(generator, tokenizer, request, promptIds);
      return ledger;
    },
    allowance: () => (request.maxTokens ?? Number.POSITIVE_INFINITY) - (ledger?.completionTokens ?? 0),
    search,
    recordSearch(outcome, range, seen) {
      session.seen.push(seen);
      ledgerOf(session).builder.search({
        query: outcome.query,
        passageIds: outcome.passages.map((passage) => passage.id),
        scores: outcome.passages.map((passage) => passage.score),
        durationMs: outcome.durationMs,
        error: outcome.error,
        duplicate: outcome.duplicate,
        observation: range,
      });
    },
  };
  return session;
}

function createSearch(house: RolloutHouse, request: RolloutRequest): Session['search'] {
  let searcher: ((query: string) => Promise<SearchOutcome>) | null = null;
  let searches = 0;
  return async function* (query) {
    if (house.retriever === null)
      throw new UnavailableError(`method "${request.method}" searches, but no index is loaded`);
    searcher ??= createSearcher({
      retriever: house.retriever,
      topK: request.topK ?? house.config.topK,
      retries: house.config.retrieverRetries,
      retryDelayMs: house.retryDelayMs ?? 200,
      signal: request.signal,
    });
    const index = searches++;
    yield { type: 'search.query', index, query };
    const outcome = await searcher(query);
    const { passages, durationMs, error } = outcome;
    yield { type: 'search.results', index, query, passages, durationMs, error };
    return outcome;
  };
}
