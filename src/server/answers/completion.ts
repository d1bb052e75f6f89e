// The events of a request gathered into one chat completion.

import type { ServerConfig } from '../../config/index.js';
import type { RolloutEvent } from '../../rollout/index.js';
import { type Annotation, annotationsOf } from '../openai/annotations.js';
import { type FinishReason, finishReasonOf } from '../openai/finish-reason.js';
import { type ChoiceLogprobs, type LogprobEntry, logprobEntries } from '../openai/logprobs.js';
import { reasoningFieldsOf } from '../openai/reasoning-fields.js';
import { type SearchResultsEvent, searchEventOf } from '../openai/search-event.js';
import { searchText } from '../openai/search-text.js';
import { tokenIdsOf, versionOf } from '../openai/token-ids.js';
import { sumUsage, type Usage } from '../openai/usage.js';
import type { ChatRun } from './chat-run.js';
import { type ChoiceNotes, choiceNotes } from './choice-notes.js';
import type { ChoiceEvent } from './merge.js';

export interface CompletionMessage {
  readonly role: 'assistant';
  readonly content: string;
  readonly refusal: null;
  readonly reasoning_content?: string;
  readonly reasoning?: string;
  readonly annotations: readonly Annotation[];
  readonly searchloop: { readonly searches: readonly SearchResultsEvent[] };
}

export interface CompletionChoice {
  readonly index: number;
  readonly message: CompletionMessage;
  readonly finish_reason: FinishReason;
  readonly logprobs: ChoiceLogprobs | null;
  readonly token_ids?: readonly number[];
  readonly searchloop?: ChoiceNotes;
}

export interface ChatCompletion {
  readonly id: string;
  readonly object: 'chat.completion';
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
  readonly choices: readonly CompletionChoice[];
  readonly usage: Usage;
  readonly prompt_token_ids?: readonly number[];
}

type Done = Extract<RolloutEvent, { type: 'done' }>;

interface Draft {
  reasoning: string;
  readonly searches: SearchResultsEvent[];
  readonly entries: LogprobEntry[];
  done: Done | null;
}

export interface CompletionBuilder {
  add(item: ChoiceEvent): void;
  /** Call after the last event. */
  result(): ChatCompletion;
}

export function createCompletion(run: ChatRun, settings: ServerConfig): CompletionBuilder {
  const drafts = Array.from(
    { length: run.body.n ?? 1 },
    (): Draft => ({
      reasoning: '',
      searches: [],
      entries: [],
      done: null,
    }),
  );
  return {
    add: ({ choice, event }) => addEvent(drafts[choice]!, event, run),
    result: () => {
      const dones = drafts.map((draft) => draft.done!);
      const version = versionOf(dones[0]!.record, run.adapterVersion);
      return {
        ...run.head,
        object: 'chat.completion',
        system_fingerprint: run.fingerprint(version),
        choices: drafts.map((draft, index) => choiceOf(draft, index, run, settings)),
        usage: sumUsage(
          dones.map((done) => done.usage),
          version,
        ),
        ...(run.body.return_token_ids
          ? { prompt_token_ids: tokenIdsOf(dones[0]!.record).prompt_token_ids }
          : {}),
      };
    },
  };
}

function addEvent(draft: Draft, event: RolloutEvent, run: ChatRun): void {
  switch (event.type) {
    case 'reasoning.delta':
      draft.reasoning += event.text;
      break;
    case 'search.query':
      draft.reasoning += searchText(event);
      break;
    case 'search.results':
      draft.reasoning += searchText(event);
      draft.searches.push(searchEventOf(event) as SearchResultsEvent);
      break;
    case 'answer.delta':
      if (run.body.logprobs) draft.entries.push(...logprobEntries(event.tokens, run.policy.tokenizer));
      break;
    case 'done':
      draft.done = event;
      break;
  }
}

function choiceOf(draft: Draft, index: number, run: ChatRun, settings: ServerConfig): CompletionChoice {
  const done = draft.done!;
  const ids = run.body.return_token_ids ? tokenIdsOf(done.record) : null;
  return {
    index,
    message: {
      role: 'assistant',
      content: done.answer,
      refusal: null,
      ...reasoningFieldsOf(draft.reasoning, settings.reasoningFields),
      annotations: annotationsOf(done.citations, settings.citationBaseUrl),
      searchloop: { searches: draft.searches },
    },
    finish_reason: finishReasonOf(done.finish),
    logprobs: run.body.logprobs ? { content: draft.entries, refusal: null } : null,
    ...(ids ? { token_ids: ids.token_ids } : {}),
    ...choiceNotes(done, ids),
  };
}
