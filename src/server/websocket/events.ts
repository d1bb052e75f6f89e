// Rollout events as frames of GET /v1/stream.

import type { ChatRun } from '../answers/chat-run.js';
import type { ChoiceEvent } from '../answers/merge.js';
import { type LogprobEntry, logprobEntries } from '../openai/logprobs.js';
import { type SearchQueryEvent, type SearchResultsEvent, searchEventOf } from '../openai/search-event.js';

export type SocketEvent = { readonly choice: number } & (
  | { readonly type: 'reasoning.delta'; readonly text: string }
  | { readonly type: 'answer.delta'; readonly text: string; readonly logprobs?: readonly LogprobEntry[] }
  | SearchQueryEvent
  | SearchResultsEvent
);

/** Null where there is nothing to show; the end of a choice is told by the request's own `done`. */
export function socketEventOf({ choice, event }: ChoiceEvent, run: ChatRun): SocketEvent | null {
  switch (event.type) {
    case 'reasoning.delta':
      return event.text === '' ? null : { type: event.type, choice, text: event.text };
    case 'answer.delta': {
      const logprobs = run.body.logprobs ? logprobEntries(event.tokens, run.policy.tokenizer) : undefined;
      if (event.text === '' && !logprobs?.length) return null;
      return { type: event.type, choice, text: event.text, ...(logprobs ? { logprobs } : {}) };
    }
    case 'search.query':
    case 'search.results':
      return { choice, ...searchEventOf(event) };
    case 'done':
      return null;
  }
}
