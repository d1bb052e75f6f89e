// One turn of one sequence in the worker: when it stops, and which text is safe to show.

import {
  createStopMatcher,
  type Detokenizer,
  type StopMatcher,
  type Tokenizer,
} from '../../tokenizer/index.js';
import type { TurnOptions, TurnStopReason } from '../generator.js';
import type { TokenCounts } from '../sampler/penalties.js';
import { type PreparedSampling, prepareSampling } from '../sampler/sampler.js';

/** Steps that may wait unread before their sequence pauses. */
export const MOST_UNREAD_STEPS = 64;

export interface RunningTurn {
  readonly id: number;
  readonly prepared: PreparedSampling;
  readonly maxTokens: number;
  readonly stopIds: ReadonlySet<number>;
  readonly detokenizer: Detokenizer;
  readonly matcher: StopMatcher;
  /** For penalties; null where no setting asks for it. */
  readonly counts: TokenCounts | null;
  sampled: number;
  /** Steps that were sent and not yet read. */
  unread: number;
}

export function startTurn(
  id: number,
  options: TurnOptions,
  counted: () => TokenCounts,
  tokenizer: Tokenizer,
  eosTokenIds: readonly number[],
): RunningTurn {
  const prepared = prepareSampling(options.sampling, options.topLogprobs);
  return {
    id,
    prepared,
    maxTokens: options.maxTokens,
    stopIds: new Set([...options.stopTokenIds, ...(options.ignoreEos ? [] : eosTokenIds)]),
    detokenizer: tokenizer.createDetokenizer({ skipSpecial: true }),
    matcher: createStopMatcher(options.stopStrings),
    counts: prepared.usesCounts ? counted() : null,
    sampled: 0,
    unread: 0,
  };
}

/** What one sampled token means for its turn. Overwritten by the next. */
export interface Advance {
  /** Text that became safe with this token. */
  text: string;
  /** null: the turn goes on. */
  reason: TurnStopReason | null;
  stopString: string | null;
  /** Held-back text, safe now that the turn is over. */
  endText: string;
}

/**
 * Takes a token that was just added to the sequence; `full` says that the sequence can hold no more. A stop token gives no text; it wins over the limits, and so does a
 * stop string that the last allowed token completes.
 */
export function advance(turn: RunningTurn, id: number, full: boolean, result: Advance): void {
  turn.sampled++;
  turn.counts?.add(id, true);
  result.text = '';
  result.reason = null;
  result.stopString = null;
  result.endText = '';
  if (turn.stopIds.has(id)) {
    finish(turn, 'stop_token', result);
    return;
  }
  const piece = turn.detokenizer.push(id);
  if (piece !== '') {
    const { safe, matched } = turn.matcher.push(piece);
    result.text = safe;
    if (matched !== null) {
      result.reason = 'stop_string';
      result.stopString = matched;
      return;
    }
  }
  if (turn.sampled >= turn.maxTokens) finish(turn, 'max_tokens', result);
  else if (full) finish(turn, 'context', result);
}

function finish(turn: RunningTurn, reason: TurnStopReason, result: Advance): void {
  const { matcher } = turn;
  const { safe } = matcher.push(turn.detokenizer.flush());
  result.endText = safe + matcher.flush();
  // The end of the text can settle a match that a longer, still open stop string had kept waiting.
  result.reason = matcher.matched === null ? reason : 'stop_string';
  result.stopString = matcher.matched;
}
