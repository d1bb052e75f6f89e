// One turn of the policy: samples to a stop, sorts the text into reasoning and answer while it arrives, and
// records every token, also those of a turn that is left early.

import type { SampledToken, Turn, TurnEnd } from '../engine/index.js';
import { PROTOCOL_TAGS, type ProtocolTag } from '../trajectory/index.js';
import { type AnswerChannel, createAnswerChannel } from './answer-channel.js';
import type { RolloutEvent } from './events.js';
import { ledgerOf, type Session } from './session.js';
import { createTurnText, runsText, type TokenRun } from './token-runs.js';
import type { Action, Reading, TurnReader } from './turn-reader.js';

export interface TurnPlan {
  readonly reader: TurnReader;
  /** Most tokens of this turn. */
  readonly maxTokens: number;
  /** Trim the answer's white space. */
  readonly trim: boolean;
  /**
   * Which tokens count as reasoning: all that are not the answer's (the answer stands between tags), or only
   * those of reasoning blocks (the whole text is the answer).
   */
  readonly reasoning: 'rest' | 'blocks';
}

/**
 * Why the turn is over. `closed`: a closing tag; `end`: the model's end token; `limit`: the turn's tokens;
 * `user_stop`: a stop string or stop token of the request; `exhausted`: the request's tokens; `context`: the
 * sequence is full.
 */
export type TurnReason = 'closed' | 'end' | 'limit' | 'user_stop' | 'exhausted' | 'context' | 'cancelled';

export interface TurnOutcome {
  readonly reason: TurnReason;
  readonly action: Action;
}

const LONGEST_TAG = Math.max(...PROTOCOL_TAGS.map((tag) => tag.length));

/** Does the end of this text begin a tag? */
const beginsTag = (text: string, tags: readonly ProtocolTag[]): boolean => {
  const at = text.lastIndexOf('<');
  return at >= 0 && tags.some((tag) => tag.startsWith(text.slice(at)));
};

/** Turns readings into events; keeps which tokens were already given with an answer delta. */
interface Teller {
  tell(readings: readonly Reading[]): Generator<RolloutEvent, void>;
  endAnswer(): Generator<RolloutEvent, void>;
  readonly answerTokens: number;
}

function createTeller(
  session: Session,
  reader: TurnReader,
  channel: AnswerChannel,
  tokens: readonly SampledToken[],
): Teller {
  let told = -1;
  let answerTokens = 0;
  function* answerDelta(runs: readonly TokenRun[]): Generator<RolloutEvent, void> {
    const text = runsText(runs);
    if (text === '') return;
    const given: SampledToken[] = [];
    for (const run of runs)
      for (let index = Math.max(run.first, told + 1); index <= run.last; index++) {
        given.push(tokens[index] as SampledToken);
        told = index;
      }
    answerTokens += given.length;
    session.answer += text;
    yield { type: 'answer.delta', text, tokens: given };
  }
  let turnBorder = true;
  /** Keeps text apart that a removed tag or the turn's border stood between, lest the two make a tag or a word. */
  const apart = ({ channel: kind, run, border }: Reading): TokenRun => {
    const tail = session.shownTail[kind];
    let separator = border && beginsTag(tail, reader.tags) ? ' ' : '';
    if (kind === 'reasoning' && turnBorder) {
      turnBorder = false;
      separator = /\S$/.test(tail) && /^\S/.test(run.text) ? '\n' : '';
    }
    const text = separator + run.text;
    session.shownTail[kind] = (tail + text).slice(-LONGEST_TAG);
    return { ...run, text };
  };
  return {
    get answerTokens() {
      return answerTokens;
    },
    *tell(readings) {
      for (let from = 0; from < readings.length && !channel.stopped; ) {
        const { channel: kind } = readings[from] as Reading;
        let to = from;
        while (readings[to]?.channel === kind) to++;
        const runs = readings.slice(from, to).map(apart);
        if (kind === 'answer') yield* answerDelta(runs.flatMap((run) => channel.push(run)));
        else yield { type: 'reasoning.delta', text: runsText(runs) };
        from = to;
      }
    },
    *endAnswer() {
      yield* answerDelta(channel.end());
    },
  };
}

/** Samples one turn. Yields its reasoning and answer deltas; returns why it ended and what the policy did. */
export async function* policyTurn(
  session: Session,
  plan: TurnPlan,
): AsyncGenerator<RolloutEvent, TurnOutcome> {
  const { request, house } = session;
  const { reader } = plan;
  const allowance = session.allowance();
  const ledger = ledgerOf(session);
  if (ledger.room() < 1) return { reason: 'context', action: reader.action };
  if (allowance < 1) return { reason: 'exhausted', action: reader.action };
  const ends = new Set(request.ignoreEos ? [] : house.generator.info.eosTokenIds);
  const userStops = new Set(request.stopTokenIds ?? []);
  const text = createTurnText(house.tokenizer);
  const channel = createAnswerChannel({ stops: request.stop ?? [], trim: plan.trim });
  const tokens: SampledToken[] = [];
  const teller = createTeller(session, reader, channel, tokens);
  let blockTokens = 0;
  let stoppedByToken = false;
  let end: TurnEnd | null = null;
  const turn = startTurn(session, plan, Math.min(plan.maxTokens, allowance));
  try {
    for (;;) {
      const step = await turn.next();
      if (step.done) {
        end = step.value;
        break;
      }
      const { id } = step.value.token;
      const wasAnswering = reader.answering;
      tokens.push(step.value.token);
      if (ends.has(id)) {
        text.skip();
        continue;
      }
      stoppedByToken = wasAnswering && userStops.has(id);
      if (stoppedByToken) break;
      yield* teller.tell(text.push(id).flatMap(reader.push));
      if (!wasAnswering || !(reader.answering || reader.closed)) blockTokens += 1;
      if (channel.stopped) break;
    }
    const userStop = stoppedByToken || channel.stopped;
    if (!userStop) {
      yield* teller.tell([...text.flush().flatMap(reader.push), ...reader.end(isCut(end))]);
    }
    yield* teller.endAnswer();
    const reason = turnReason(reader, end, userStop || channel.stopped, plan.maxTokens, allowance);
    return { reason, action: reader.action };
  } finally {
    if (end === null) await turn.return(undefined as never);
    ledger.sampled(tokens);
    session.counts.reasoningTokens +=
      plan.reasoning === 'blocks' ? blockTokens : tokens.length - teller.answerTokens;
  }
}

function startTurn(session: Session, plan: TurnPlan, maxTokens: number): Turn {
  const { request, house } = session;
  const { addedTokens, specialIds } = house.tokenizer;
  // Control tokens have no text in which the engine could find a stop string.
  const closingIds = plan.reader.closings
    .map((tag) => addedTokens.get(tag))
    .filter((id) => id !== undefined && specialIds.has(id)) as number[];
  return ledgerOf(session).sequence.generate({
    sampling: request.sampling,
    maxTokens,
    stopStrings: plan.reader.closings,
    stopTokenIds: closingIds,
    ...(request.ignoreEos === undefined ? {} : { ignoreEos: request.ignoreEos }),
    ...(request.topLogprobs === undefined ? {} : { topLogprobs: request.topLogprobs }),
  });
}

const isCut = (end: TurnEnd | null): boolean =>
  end !== null && end.reason !== 'stop_token' && end.reason !== 'stop_string';

function turnReason(
  reader: TurnReader,
  end: TurnEnd | null,
  userStop: boolean,
  turnTokens: number,
  allowance: number,
): TurnReason {
  if (userStop) return 'user_stop';
  if (reader.closed) return 'closed';
  if (end === null || end.reason === 'cancelled') return 'cancelled';
  if (end.reason === 'context') return 'context';
  if (end.reason === 'max_tokens') return turnTokens < allowance ? 'limit' : 'exhausted';
  return 'end';
}
