// The answer while it is being written: leading and trailing white space held back, the caller's stop
// strings applied, so that the deltas joined are the final answer to the character.

import { createStopMatcher } from '../tokenizer/index.js';
import { leadingSpaceLength, trailingSpaceLength } from '../trajectory/index.js';
import { createRunQueue, type TokenRun } from './token-runs.js';

export interface AnswerChannelOptions {
  /** The caller's stop strings; they act on the answer's text. */
  readonly stops: readonly string[];
  /** Drop white space at both ends (protocol, section 4). Plain chat keeps its text as it is. */
  readonly trim: boolean;
}

export interface AnswerChannel {
  /** Runs that may be shown now. */
  push(run: TokenRun): TokenRun[];
  /** The answer ended without a stop string. */
  end(): TokenRun[];
  /** A stop string matched: the answer is over. */
  readonly stopped: boolean;
}

export function createAnswerChannel(options: AnswerChannelOptions): AnswerChannel {
  const matcher = createStopMatcher(options.stops);
  const unmatched = createRunQueue();
  const safe = createRunQueue();
  let skipping = options.trim;
  let stopped = false;

  const show = (text: string): TokenRun[] => {
    for (const run of unmatched.take(text.length)) safe.push(run);
    const tail = options.trim ? trailingSpaceLength(safe.text) : 0;
    return safe.take(safe.text.length - tail);
  };

  return {
    get stopped() {
      return stopped;
    },
    push(run) {
      if (stopped) return [];
      let rest = run;
      if (skipping) {
        const space = leadingSpaceLength(run.text);
        if (space === run.text.length) return [];
        rest = { ...run, text: run.text.slice(space) };
        skipping = false;
      }
      unmatched.push(rest);
      const { safe: text, matched } = matcher.push(rest.text);
      stopped = matched !== null;
      return show(text);
    },
    end: () => (stopped ? [] : show(matcher.flush())),
  };
}
