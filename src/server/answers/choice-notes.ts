// What we say of a choice beside what the API knows.

import type { RolloutEvent } from '../../rollout/index.js';
import type { TokenIds } from '../openai/token-ids.js';

export interface ChoiceNotes {
  /** Id under which feedback finds this answer. */
  readonly answer_id?: string;
  /** The answer and all that led to it are on disk; false: they may come to be, or not. */
  readonly stored?: boolean;
  readonly sequence?: TokenIds['sequence'];
}

/** Nothing where nothing is kept and no token ids were asked for. */
export function choiceNotes(
  { record, stored }: Extract<RolloutEvent, { type: 'done' }>,
  ids: TokenIds | null,
): { readonly searchloop?: ChoiceNotes } {
  if (stored === null && ids === null) return {};
  return {
    searchloop: {
      ...(stored === null ? {} : { answer_id: record.id, stored }),
      ...(ids === null ? {} : { sequence: ids.sequence }),
    },
  };
}
