// Retrieval-augmented generation: one search with the question as query, its passages in the prompt, and the
// whole text is the answer.

import { promptMessages, questionOf } from '../conversation.js';
import type { PlacedPassages } from '../passages.js';
import { fillTemplate } from '../prompt-file.js';
import type { SearchOutcome } from '../retrieval-step.js';
import type { Session } from '../session.js';
import { wholeTurn } from './endings.js';
import type { Method } from './method.js';

/** Tokens may join differently where passages meet the instruction. */
const BORDER_TOKENS = 8;

export const rag: Method = {
  name: 'rag',
  searches: true,
  promptDigest: (prompts) => prompts.rag.digest,
  async *run(session) {
    const { request, house } = session;
    const bare = await promptIds(session, '');
    const outcome = yield* session.search(questionOf(request.messages));
    const placed = await placeForPrompt(session, outcome, bare.length);
    const ids = placed.text === '' ? bare : await promptIds(session, placed.text);
    await session.open(ids);
    session.recordSearch(outcome, [0, ids.length], placed.passages);
    return yield* wholeTurn(session, {
      tags: 'all',
      maxTokens: request.maxTokens ?? house.config.turnTokens,
    });
  },
};

function promptIds(session: Session, passages: string): Promise<number[]> {
  const { instruction } = session.house.prompts.rag;
  const messages = promptMessages(session.request.messages, (question) =>
    fillTemplate(instruction, { passages, question }),
  );
  return session.encodePrompt(messages);
}

/** Passages give way before the answer's space does; question and template are never cut. */
async function placeForPrompt(
  session: Session,
  outcome: SearchOutcome,
  bareLength: number,
): Promise<Pick<PlacedPassages, 'text' | 'passages'>> {
  const { config, encoding, generator, prompts, tokenizer } = session.house;
  const answer = Math.min(session.allowance(), config.turnTokens);
  const spare = generator.info.maxSequenceTokens - bareLength - answer - BORDER_TOKENS;
  const limit = Math.min(config.observationTokens, spare);
  const form = prompts.rag.observation;
  const nothing = { text: '', passages: [] };
  if (outcome.error !== null)
    return tokenizer.encodePlain(form.failure).length > limit
      ? nothing
      : { text: form.failure, passages: [] };
  const request = { form, prefix: '', suffix: '', limit, passageLimit: config.passageTokens };
  return (await encoding.place(outcome.passages, request)) ?? nothing;
}
