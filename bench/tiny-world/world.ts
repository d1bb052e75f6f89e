// A small made-up world: people, towns and rivers, and one fact for each relation that a thing can stand in. Its
// things form two halves that no fact joins: one to learn from, one held out.

import { derivedSeed } from '#searchloop/util/derived-seed.js';
import { randomNumbers } from '#searchloop/util/random.js';
import { inventWords, pairNames } from './names.js';
import { type EntityKind, QUESTION_FORMS, RELATIONS, type RelationName } from './relations.js';

export type WorldPart = 'training' | 'held-out';

export interface Fact {
  readonly subject: string;
  readonly relation: RelationName;
  readonly object: string;
  readonly part: WorldPart;
}

export interface World {
  /** Words that names are made of, by kind: first ones and second ones. */
  readonly nameWords: Readonly<Record<EntityKind, readonly [readonly string[], readonly string[]]>>;
  readonly names: Readonly<Record<WorldPart, Readonly<Record<EntityKind, readonly string[]>>>>;
  readonly facts: readonly Fact[];
  /** The one thing that stands in a relation to a subject. */
  objectOf(subject: string, relation: RelationName): string | undefined;
}

export interface WorldSettings {
  readonly seed: number;
  /** First words of names, and as many second ones, for each kind. */
  readonly nameWords: number;
  readonly counts: Readonly<Record<WorldPart, Readonly<Record<EntityKind, number>>>>;
}

export const WORLD_SETTINGS: WorldSettings = {
  seed: 1,
  nameWords: 28,
  counts: {
    training: { person: 420, town: 140, river: 100 },
    'held-out': { person: 140, town: 60, river: 40 },
  },
};

const KINDS: readonly EntityKind[] = ['person', 'town', 'river'];
const PARTS: readonly WorldPart[] = ['training', 'held-out'];

/** Words of the world's sentences, so that no name is made of one. */
const sentenceWords = (): string[] =>
  [
    ...Object.values(RELATIONS).flatMap(({ sentence, keyword }) => [sentence, keyword]),
    ...QUESTION_FORMS.map(({ text }) => text),
  ]
    .join(' ')
    .split(/\s+/);

/** The same settings give the same world. */
export function createWorld(settings: WorldSettings = WORLD_SETTINGS): World {
  const { seed, nameWords: count, counts } = settings;
  const random = randomNumbers(derivedSeed(seed, 'tiny world'));
  const taken = new Set(sentenceWords());
  const words = () => inventWords(count, random, taken);
  const nameWords: World['nameWords'] = {
    person: [words(), words()],
    town: [words(), words()],
    river: [words(), words()],
  };
  return peopled(nameWords, counts, random, new Set());
}

/**
 * A world of its own with names of the same words, none of them one that is held out in `world`, and no half held
 * out: there is nothing to know of it but what a search tells.
 */
export function otherWorld(world: World, seed: number): World {
  const random = randomNumbers(derivedSeed(seed, 'other tiny world'));
  const counts = { training: OTHER_COUNTS, 'held-out': { person: 0, town: 0, river: 0 } };
  return peopled(world.nameWords, counts, random, new Set(Object.values(world.names['held-out']).flat()));
}

const OTHER_COUNTS = { person: 150, town: 60, river: 40 } as const;

function peopled(
  nameWords: World['nameWords'],
  counts: WorldSettings['counts'],
  random: () => number,
  avoided: ReadonlySet<string>,
): World {
  const names = { training: {}, 'held-out': {} } as Record<WorldPart, Record<EntityKind, string[]>>;
  for (const kind of KINDS) {
    const { training, 'held-out': heldOut } = counts;
    const all = pairNames(training[kind] + heldOut[kind], nameWords[kind], random, avoided);
    names.training[kind] = all.slice(0, training[kind]);
    names['held-out'][kind] = all.slice(training[kind]);
  }
  const facts = PARTS.flatMap((part) => factsOf(part, names[part], random));
  const byRelation = new Map(facts.map((fact) => [`${fact.relation} ${fact.subject}`, fact.object]));
  return {
    nameWords,
    names,
    facts,
    objectOf: (subject, relation) => byRelation.get(`${relation} ${subject}`),
  };
}

function factsOf(
  part: WorldPart,
  names: Readonly<Record<EntityKind, readonly string[]>>,
  random: () => number,
): Fact[] {
  const facts: Fact[] = [];
  for (const relation of Object.keys(RELATIONS) as RelationName[])
    for (const subject of names[RELATIONS[relation].subject]) {
      const others = names[RELATIONS[relation].object].filter((name) => name !== subject);
      const object = others[Math.floor(random() * others.length)] as string;
      facts.push({ subject, relation, object, part });
    }
  return facts;
}
