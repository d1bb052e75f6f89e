// What a policy of the tiny world writes, turn by turn.

import { fill, RELATIONS, type RelationName } from './relations.js';

/** A fact as a thought repeats it. */
export interface KnownFact {
  readonly subject: string;
  readonly relation: RelationName;
  readonly object: string;
}

const factText = ({ subject, relation, object }: KnownFact): string =>
  fill(RELATIONS[relation].sentence, subject, object);

/** @param known  what the last search told; null at the first turn */
export function searchTurn(subject: string, keyword: string, known: KnownFact | null): string {
  const thought = known === null ? 'i need to search .' : `${factText(known)} i need more .`;
  const query = keyword === '' ? subject : `${subject} ${keyword}`;
  return `<think> ${thought}</think><search> ${query}</search>`;
}

/** The answer to what is known last. */
export function answerTurn(known: KnownFact): string {
  return `<think> ${factText(known)}</think><answer> ${known.object}</answer>`;
}

/** A turn that does not even search. */
export const GIVE_UP = '<think> i do not know .</think><answer> unknown</answer>';

/** Words of thoughts and answers beyond those of facts. */
export const THOUGHT_WORDS = `i need to search more . ${GIVE_UP}`;
