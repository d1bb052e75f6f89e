// What a reader of one turn's sampled text is: it sorts the text into reasoning and answer while it arrives
// and says, at the end, what the policy did.

import type { ProtocolTag } from '../trajectory/index.js';
import type { TokenRun } from './token-runs.js';

export type Action =
  | { readonly kind: 'search'; readonly query: string }
  | { readonly kind: 'answer' }
  | { readonly kind: 'invalid'; readonly reason: string };

export interface Reading {
  readonly channel: 'reasoning' | 'answer';
  readonly run: TokenRun;
  /** First text behind a tag, or of the turn: what was shown before it did not stand next to it. */
  readonly border: boolean;
}

export interface TurnReader {
  /** Tags that are never shown. */
  readonly tags: readonly ProtocolTag[];
  /** Tags at which sampling stops. */
  readonly closings: readonly ProtocolTag[];
  /** Text read now belongs to a shown answer. */
  readonly answering: boolean;
  /** A closing tag was read: the turn is over, and later text is not looked at. */
  readonly closed: boolean;
  push(run: TokenRun): Reading[];
  /** The turn ended. `cut`: by a limit, so that a tag may have been cut in two. */
  end(cut: boolean): Reading[];
  /** Valid after a closing tag or `end`. */
  readonly action: Action;
}

/** A closing tag that was cut in two is no part of the answer; a lone `<` counts only where a limit cut. */
export function cutTagLength(text: string, closings: readonly ProtocolTag[], cut: boolean): number {
  if (text === '' || (text.length < 2 && !cut)) return 0;
  return closings.some((tag) => tag.startsWith(text)) ? text.length : 0;
}
