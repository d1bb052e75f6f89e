// The events of a request as chat completion chunks. For each choice: a chunk with the role, then deltas,
// then one chunk with the finish reason and nothing else.

import type { ServerConfig } from '../../config/index.js';
import type { RolloutEvent, RolloutUsage } from '../../rollout/index.js';
import { annotationsOf } from '../openai/annotations.js';
import { type FinishReason, finishReasonOf } from '../openai/finish-reason.js';
import { type ChoiceLogprobs, logprobEntries } from '../openai/logprobs.js';
import { reasoningFieldsOf } from '../openai/reasoning-fields.js';
import { searchEventOf } from '../openai/search-event.js';
import { searchText } from '../openai/search-text.js';
import { tokenIdsOf, versionOf } from '../openai/token-ids.js';
import { sumUsage, type Usage } from '../openai/usage.js';
import type { ChatRun } from './chat-run.js';
import { type ChoiceNotes, choiceNotes } from './choice-notes.js';
import type { ChoiceEvent } from './merge.js';

interface ChunkChoice {
  readonly index: number;
  readonly delta: Readonly<Record<string, unknown>>;
  readonly finish_reason: FinishReason | null;
  readonly logprobs: ChoiceLogprobs | null;
  readonly token_ids?: readonly number[];
  readonly searchloop?: ChoiceNotes;
}

export interface ChatChunk {
  readonly id: string;
  readonly object: 'chat.completion.chunk';
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
  readonly choices: readonly ChunkChoice[];
  readonly usage?: Usage | null;
  readonly prompt_token_ids?: readonly number[];
}

type Done = Extract<RolloutEvent, { type: 'done' }>;

export interface Chunker {
  chunksOf(item: ChoiceEvent): ChatChunk[];
  /** What follows the last event: the usage chunk when it was asked for. */
  closing(): ChatChunk[];
}

export function createChunker(run: ChatRun, settings: ServerConfig): Chunker {
  const withUsage = run.body.stream_options?.include_usage ?? false;
  const opened = new Set<number>();
  const usages: RolloutUsage[] = [];
  const versions = new Map<number, string>();
  let fingerprint = run.fingerprint(run.adapterVersion);

  const chunk = (choices: readonly ChunkChoice[], extra: Partial<ChatChunk> = {}): ChatChunk => ({
    ...run.head,
    object: 'chat.completion.chunk',
    system_fingerprint: fingerprint,
    choices,
    ...(withUsage ? { usage: null } : {}),
    ...extra,
  });
  const delta = (index: number, fields: ChunkChoice['delta'], logprobs: ChoiceLogprobs | null = null) =>
    chunk([{ index, delta: fields, logprobs, finish_reason: null }]);
  const opening = (index: number): ChatChunk[] => {
    if (opened.has(index)) return [];
    opened.add(index);
    return [delta(index, { role: 'assistant', content: '', refusal: null })];
  };
  const ending = (index: number, done: Done): ChatChunk[] => {
    const version = versionOf(done.record, run.adapterVersion);
    versions.set(index, version);
    fingerprint = run.fingerprint(version);
    usages.push(done.usage);
    const annotations = annotationsOf(done.citations, settings.citationBaseUrl);
    const ids = run.body.return_token_ids ? tokenIdsOf(done.record) : null;
    const choice: ChunkChoice = {
      index,
      delta: {},
      logprobs: null,
      finish_reason: finishReasonOf(done.finish),
      ...(ids ? { token_ids: ids.token_ids } : {}),
      ...choiceNotes(done, ids),
    };
    return [
      ...(annotations.length > 0 ? [delta(index, { annotations })] : []),
      chunk([choice], ids ? { prompt_token_ids: ids.prompt_token_ids } : {}),
    ];
  };

  return {
    chunksOf: ({ choice, event }) => {
      const chunks = opening(choice);
      if (event.type === 'done') return [...chunks, ...ending(choice, event)];
      const fields = deltaOf(event, settings);
      const logprobs =
        event.type === 'answer.delta' && run.body.logprobs && event.tokens.length > 0
          ? { content: logprobEntries(event.tokens, run.policy.tokenizer), refusal: null }
          : null;
      return fields || logprobs ? [...chunks, delta(choice, fields ?? { content: '' }, logprobs)] : chunks;
    },
    closing: () => {
      if (!withUsage) return [];
      return [chunk([], { usage: sumUsage(usages, versions.get(0) ?? run.adapterVersion) })];
    },
  };
}

/** Null where there is nothing to show. */
function deltaOf(
  event: Exclude<RolloutEvent, { type: 'done' }>,
  settings: ServerConfig,
): ChunkChoice['delta'] | null {
  switch (event.type) {
    case 'reasoning.delta':
      return event.text === '' ? null : reasoningFieldsOf(event.text, settings.reasoningFields);
    case 'answer.delta':
      return event.text === '' ? null : { content: event.text };
    default:
      return {
        ...reasoningFieldsOf(searchText(event), settings.reasoningFields),
        searchloop: searchEventOf(event),
      };
  }
}
