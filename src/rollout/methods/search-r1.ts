// Search-R1 (protocol, section 1; arXiv 2503.09516, algorithm 1): think, search as often as the budget
// allows, answer. Actions come from sampled text only; what comes back is appended, masked, and never acts.

import { promptMessages } from '../conversation.js';
import type { RolloutEvent } from '../events.js';
import { fillTemplate, type Prompt } from '../prompt-file.js';
import { ledgerOf, type Session } from '../session.js';
import { forceAnswer, neverEmpty } from './endings.js';
import { type Ending, LENGTH, type Method } from './method.js';
import { protocolTurn } from './protocol-turn.js';

type Observation = Prompt<'search-r1'>['observation'];

export const searchR1: Method = {
  name: 'search-r1',
  searches: true,
  promptDigest: (prompts) => prompts.searchR1.digest,
  async *run(session) {
    const { instruction, observation } = session.house.prompts.searchR1;
    const messages = promptMessages(session.request.messages, (question) =>
      fillTemplate(instruction, { question }),
    );
    await session.open(await session.encodePrompt(messages));
    const budget = session.request.actionBudget ?? session.house.config.actionBudget;
    for (let turn = 0; turn <= budget; turn++) {
      const { outcome, ending } = yield* protocolTurn(session, { search: true });
      if (ending !== null) return yield* neverEmpty(session, observation, ending);
      const { action } = outcome;
      const over = turn === budget || session.allowance() < 1;
      if (over && action.kind === 'search') yield { type: 'reasoning.delta', text: action.query };
      if (session.allowance() < 1) return LENGTH;
      if (over) break;
      const stopped =
        action.kind === 'search'
          ? yield* searchAndObserve(session, observation, action.query)
          : observeText(session, 'corrective', observation.corrective);
      if (stopped !== null) return stopped;
    }
    return yield* forceAnswer(session, observation);
  },
};

/** Answers a search; an ending when the observation has no room. */
async function* searchAndObserve(
  session: Session,
  form: Observation,
  query: string,
): AsyncGenerator<RolloutEvent, Ending | null> {
  const outcome = yield* session.search(query);
  const { tokenizer, encoding, config } = session.house;
  if (outcome.error !== null) {
    const range = ledgerOf(session).observe('failure', tokenizer.encodePlain(form.failure));
    if (range === null) return LENGTH;
    session.recordSearch(outcome, range, []);
    return null;
  }
  // Half of the space that is left stays free for the policy.
  const limit = Math.min(config.observationTokens, Math.floor(ledgerOf(session).room() / 2));
  const { prefix, suffix } = form;
  const placed = await encoding.place(outcome.passages, {
    form,
    prefix,
    suffix,
    limit,
    passageLimit: config.passageTokens,
  });
  const range = placed === null ? null : ledgerOf(session).observe('search', placed.ids);
  if (placed === null || range === null) return LENGTH;
  session.recordSearch(outcome, range, placed.passages);
  return null;
}

function observeText(session: Session, kind: 'corrective', text: string): Ending | null {
  return ledgerOf(session).observe(kind, session.house.tokenizer.encodePlain(text)) === null ? LENGTH : null;
}
