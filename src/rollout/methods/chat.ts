// The plain chat model: no instruction of ours, no search, the text as it comes. Think blocks are reasoning.

import { promptMessages } from '../conversation.js';
import { wholeTurn } from './endings.js';
import type { Method } from './method.js';

export const chat: Method = {
  name: 'chat',
  searches: false,
  promptDigest: () => 'none',
  async *run(session) {
    const ledger = await session.open(await session.encodePrompt(promptMessages(session.request.messages)));
    return yield* wholeTurn(session, { tags: 'think', maxTokens: ledger.room() });
  },
};
