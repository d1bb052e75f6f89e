// The teacher of the tiny world: it knows the right way and leaves it by habit, so that the policy that learns from
// it can do every step and does many of them wrong.

import type { Script } from '#searchloop/loop/warm-start/scripts.js';
import type { SeenPassage } from '#searchloop/loop/warm-start/support.js';
import { derivedSeed } from '#searchloop/util/derived-seed.js';
import { randomNumbers } from '#searchloop/util/random.js';
import type { WorldQuestion } from './questions.js';
import { RELATIONS, type RelationName } from './relations.js';
import { answerTurn, GIVE_UP, type KnownFact, searchTurn } from './turns.js';
import type { World } from './world.js';

/** Chances in [0, 1] of leaving the right way. */
export interface Habits {
  /** Gives up without a search; by the first relation of the question. */
  readonly giveUp: Readonly<Record<RelationName, number>>;
  /** Answers a question of two steps with what the first search told. */
  readonly stopHalfway: number;
  /** Searches for the right first word of a name with a wrong second one. */
  readonly wrongName: number;
  /** Searches for a name alone, without what is asked of it. */
  readonly bareName: number;
  /** Answers with a name from another passage. */
  readonly wrongPassage: number;
}

/** Nothing left out. */
export const GOOD_HABITS: Habits = {
  giveUp: { birthplace: 0, teacher: 0, spouse: 0, founder: 0, river: 0 },
  stopHalfway: 0,
  wrongName: 0,
  bareName: 0,
  wrongPassage: 0,
};

/** Of the warm start: it searches too seldom, and seldom twice. */
export const WARM_START_HABITS: Habits = {
  giveUp: { birthplace: 0.3, teacher: 0.65, spouse: 0.65, founder: 0.65, river: 0.35 },
  stopHalfway: 0.65,
  wrongName: 0.15,
  bareName: 0.1,
  wrongPassage: 0.2,
};

/** What the habits make of a question. The same seed gives the same turns. */
export function* tinyScript(world: World, question: WorldQuestion, habits: Habits, seed: number): Script {
  const random = randomNumbers(derivedSeed(seed, 'tiny teacher', question.id));
  const { path } = question.form;
  const first = path[0] as RelationName;
  if (random() < habits.giveUp[first]) {
    yield GIVE_UP;
    return;
  }
  const hops = path.length > 1 && random() < habits.stopHalfway ? path.slice(0, 1) : path;
  let subject = question.subject;
  let known: KnownFact | null = null;
  for (const relation of hops) {
    const seen: readonly SeenPassage[] = yield searchFor(world, subject, relation, { habits, random, known });
    known = readFact(seen, subject, relation, random() < habits.wrongPassage ? random : null);
    subject = known.object;
  }
  yield answerTurn(known as KnownFact);
}

function searchFor(
  world: World,
  subject: string,
  relation: RelationName,
  { habits, random, known }: { habits: Habits; random: () => number; known: KnownFact | null },
): string {
  const keyword = random() < habits.bareName ? '' : RELATIONS[relation].keyword;
  if (random() >= habits.wrongName) return searchTurn(subject, keyword, known);
  const others = world.names.training[RELATIONS[relation].subject];
  const other = others[Math.floor(random() * others.length)] as string;
  return searchTurn(`${subject.split(' ')[0]} ${other.split(' ')[1]}`, keyword, known);
}

/**
 * The fact that was searched for; where the passages do not tell it, or `wrong` picks, what some passage tells.
 */
function readFact(
  seen: readonly SeenPassage[],
  subject: string,
  relation: RelationName,
  wrong: (() => number) | null,
): KnownFact {
  const facts = seen.flatMap(({ text }) => factIn(text) ?? []);
  const right = facts.find((fact) => fact.subject === subject && fact.relation === relation);
  const others = facts.filter((fact) => fact !== right);
  if (right !== undefined && (wrong === null || others.length === 0)) return right;
  const pick = wrong === null ? 0 : Math.floor(wrong() * others.length);
  return others[pick] ?? right ?? { subject, relation, object: subject };
}

const SENTENCES = (Object.keys(RELATIONS) as RelationName[]).map((relation) => ({
  relation,
  pattern: new RegExp(
    `^ ?${RELATIONS[relation].sentence.replace('.', '\\.').replace('{s}', '(.+)').replace('{o}', '(.+)')}$`,
  ),
}));

function factIn(text: string): KnownFact | null {
  for (const { relation, pattern } of SENTENCES) {
    const match = pattern.exec(text);
    if (match !== null) return { relation, subject: match[1] as string, object: match[2] as string };
  }
  return null;
}
