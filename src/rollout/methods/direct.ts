// Direct answer from parameters: the whole text is the answer.

import { promptMessages } from '../conversation.js';
import { fillTemplate } from '../prompt-file.js';
import { wholeTurn } from './endings.js';
import type { Method } from './method.js';

export const direct: Method = {
  name: 'direct',
  searches: false,
  promptDigest: (prompts) => prompts.direct.digest,
  async *run(session) {
    const { request, house } = session;
    const messages = promptMessages(request.messages, (question) =>
      fillTemplate(house.prompts.direct.instruction, { question }),
    );
    await session.open(await session.encodePrompt(messages));
    return yield* wholeTurn(session, {
      tags: 'all',
      maxTokens: request.maxTokens ?? house.config.turnTokens,
    });
  },
};
