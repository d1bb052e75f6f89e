// Chain of thought: reason, then answer between tags. One turn, no search.

import { promptMessages } from '../conversation.js';
import { fillTemplate } from '../prompt-file.js';
import { forceAnswer, neverEmpty } from './endings.js';
import { LENGTH, type Method } from './method.js';
import { protocolTurn } from './protocol-turn.js';

export const cot: Method = {
  name: 'cot',
  searches: false,
  promptDigest: (prompts) => prompts.cot.digest,
  async *run(session) {
    const { instruction, observation } = session.house.prompts.cot;
    const messages = promptMessages(session.request.messages, (question) =>
      fillTemplate(instruction, { question }),
    );
    await session.open(await session.encodePrompt(messages));
    const { ending } = yield* protocolTurn(session, { search: false });
    if (ending !== null) return yield* neverEmpty(session, observation, ending);
    if (session.allowance() < 1) return LENGTH;
    return yield* forceAnswer(session, observation);
  },
};
