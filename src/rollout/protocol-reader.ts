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

/** Where the reader stands. */
interface State {
  readonly options: ProtocolReaderOptions;
  thinking: boolean;
  open: 'search' | 'answer' | null;
  /** A tag stood inside the open one: whatever closes it, it is no action. */
  nested: boolean;
  /** The open answer is shown while it is written; never inside a think block, where it may be a mere mention. */
  live: boolean;
  held: Omit<Reading, 'channel'>[];
  border: boolean;
  closed: boolean;
  action: Action;
}

export function createProtocolReader(options: ProtocolReaderOptions): TurnReader {
  const closings = options.search ? (['</search>', '</answer>'] as const) : (['</answer>'] as const);
  const scanner = createTagScanner(PROTOCOL_TAGS);
  const state: State = {
    options,
    thinking: options.thinking ?? false,
    open: null,
    nested: false,
    live: false,
    held: [],
    border: true,
    closed: false,
    action: { kind: 'invalid', reason: 'no action' },
  };
  return {
    tags: PROTOCOL_TAGS,
    closings,
    get answering() {
      return state.open === 'answer' && state.live && !state.nested && !state.closed;
    },
    get closed() {
      return state.closed;
    },
    get action() {
      return state.action;
    },
    push: (run) => scanner.push(run).flatMap((item) => read(state, item)),
    end(cut) {
      if (state.closed) return [];
      if (state.open !== null) state.action = { kind: 'invalid', reason: `<${state.open}> is never closed` };
      const rest = scanner.flush();
      const dropped = state.live && !state.nested && cutTagLength(runsText(rest), closings, cut) > 0;
      const readings = dropped ? [] : rest.flatMap((run) => readText(state, run));
      return [...readings, ...release(state, 'reasoning')];
    },
  };
}

function read(state: State, item: Scanned): Reading[] {
  if (state.closed) return [];
  if (item.kind === 'text') return readText(state, item.run);
  const { tag } = item;
  const { search, live } = state.options;
  state.border = true;
  if (tag === '</answer>') return close(state, 'answer');
  if (tag === '</search>' && search) return close(state, 'search');
  if (state.open !== null) {
    state.nested = true;
    return release(state, 'reasoning');
  }
  if (tag === '<answer>') {
    state.open = 'answer';
    state.live = live && !state.thinking;
  } else if (tag === '<search>' && search) state.open = 'search';
  else if (tag === '<think>') state.thinking = true;
  else if (tag === '</think>') state.thinking = false;
  return [];
}

function readText(state: State, run: TokenRun): Reading[] {
  const item = { run, border: state.border };
  state.border = false;
  if (state.open === null || state.nested) return [{ ...item, channel: 'reasoning' }];
  if (state.live) return [{ ...item, channel: 'answer' }];
  state.held.push(item);
  return [];
}

function close(state: State, name: 'search' | 'answer'): Reading[] {
  const { open, nested, held } = state;
  state.closed = true;
  if (open === null || nested || open !== name) {
    const reason = open === null ? `</${name}> closes nothing` : 'tags are nested';
    state.action = { kind: 'invalid', reason };
    return release(state, 'reasoning');
  }
  if (name === 'answer') {
    state.action = { kind: 'answer' };
    return release(state, 'answer');
  }
  const content = held.map((item) => item.run);
  state.action = searchAction(content, state.options.queryTokens);
  return state.action.kind === 'search' ? [] : release(state, 'reasoning');
}

/** What was held goes into a channel. */
function release(state: State, channel: Reading['channel']): Reading[] {
  const readings = state.held.map((item) => ({ ...item, channel }));
  state.held = [];
  return readings;
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
