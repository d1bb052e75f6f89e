// Reads a turn in which the policy acts by tags (protocol, section 1, rules 2 and 3): `<search>` or
// `<answer>`, ended by the first closing tag of either. All other text is reasoning.

import { PROTOCOL_TAGS, trimSpace } from '../trajectory/index.js';
import { createTagScanner, type Scanned } from './tag-scanner.js';
import { runsText, type TokenRun } from './token-runs.js';
import { type Action, cutTagLength, type Reading, type TurnReader } from './turn-reader.js';

export interface ProtocolReaderOptions {
  /** May the policy search? If not, search tags mean nothing. */
  readonly search: boolean;
  /**
   * Show an answer while it is being written. An answer that is not shown live is held until its closing tag
   * makes it valid; what turns out to be no answer becomes reasoning.
   */
  readonly live: boolean;
  /** Longest valid query, in sampled tokens. */
  readonly queryTokens: number;
  /** The prompt left a `<think>` open. */
  readonly thinking?: boolean;
}

export function createProtocolReader(options: ProtocolReaderOptions): TurnReader {
  const closings = options.search ? (['</search>', '</answer>'] as const) : (['</answer>'] as const);
  const scanner = createTagScanner(PROTOCOL_TAGS);
  let thinking = options.thinking ?? false;
  let open: 'search' | 'answer' | null = null;
  let nested = false;
  /** The open answer is shown while it is written; never inside a think block, where it may be a mere mention. */
  let live = false;
  let held: Omit<Reading, 'channel'>[] = [];
  let border = true;
  let closed = false;
  let action: Action = { kind: 'invalid', reason: 'no action' };

  const release = (channel: Reading['channel']): Reading[] => {
    const readings = held.map((item) => ({ ...item, channel }));
    held = [];
    return readings;
  };

  const readText = (run: TokenRun): Reading[] => {
    const item = { run, border };
    border = false;
    if (open === null || nested) return [{ ...item, channel: 'reasoning' }];
    if (live) return [{ ...item, channel: 'answer' }];
    held.push(item);
    return [];
  };

  const close = (name: 'search' | 'answer'): Reading[] => {
    closed = true;
    if (open === null || nested || open !== name) {
      const reason = open === null ? `</${name}> closes nothing` : 'tags are nested';
      action = { kind: 'invalid', reason };
      return release('reasoning');
    }
    if (name === 'answer') {
      action = { kind: 'answer' };
      return release('answer');
    }
    action = searchAction(
      held.map((item) => item.run),
      options.queryTokens,
    );
    return action.kind === 'search' ? [] : release('reasoning');
  };

  const read = (item: Scanned): Reading[] => {
    if (closed) return [];
    if (item.kind === 'text') return readText(item.run);
    const { tag } = item;
    border = true;
    if (tag === '</answer>') return close('answer');
    if (tag === '</search>' && options.search) return close('search');
    if (open !== null) {
      nested = true;
      return release('reasoning');
    }
    if (tag === '<answer>') {
      open = 'answer';
      live = options.live && !thinking;
    } else if (tag === '<search>' && options.search) open = 'search';
    else if (tag === '<think>') thinking = true;
    else if (tag === '</think>') thinking = false;
    return [];
  };

  return {
    tags: PROTOCOL_TAGS,
    closings,
    get answering() {
      return open === 'answer' && live && !nested && !closed;
    },
    get closed() {
      return closed;
    },
    get action() {
      return action;
    },
    push: (run) => scanner.push(run).flatMap(read),
    end(cut) {
      if (closed) return [];
      if (open !== null) action = { kind: 'invalid', reason: `<${open}> is never closed` };
      const rest = scanner.flush();
      const dropped = live && !nested && cutTagLength(runsText(rest), closings, cut) > 0;
      return [...(dropped ? [] : rest.flatMap(readText)), ...release('reasoning')];
    },
  };
}

/** Trimmed content of a search, or why it is not valid. Its length is that of the sampled tokens it touches. */
function searchAction(content: readonly TokenRun[], queryTokens: number): Action {
  const query = trimSpace(runsText(content));
  if (query === '') return { kind: 'invalid', reason: 'the query is empty' };
  const worded = content.filter((run) => trimSpace(run.text) !== '');
  const tokens = (worded.at(-1) as TokenRun).last - (worded[0] as TokenRun).first + 1;
  if (tokens > queryTokens)
    return { kind: 'invalid', reason: `the query has ${tokens} tokens, more than ${queryTokens}` };
  return { kind: 'search', query };
}

/**
 * The action in one turn's sampled text. Pure: text in, action out; what stands beyond the first closing tag
 * is not looked at. Without tokens to count, every query counts as one.
 */
export function parseAction(sampledText: string, options: { readonly search?: boolean } = {}): Action {
  const reader = createProtocolReader({ search: options.search ?? true, live: false, queryTokens: 1 });
  reader.push({ text: sampledText, first: 0, last: 0 });
  reader.end(false);
  return reader.action;
}
