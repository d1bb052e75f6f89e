// Questions about the world, and the passages that answer them.

import { partOf, type Question } from '#searchloop/evaluation/index.js';
import type { PassageInput } from '#searchloop/retrieval/index.js';
import { derivedSeed } from '#searchloop/util/derived-seed.js';
import { shuffledOrder } from '#searchloop/util/random.js';
import { fill, QUESTION_FORMS, type QuestionForm, RELATIONS, type RelationName } from './relations.js';
import type { Fact, World, WorldPart } from './world.js';

/** A question with the way to its answer. */
export interface WorldQuestion extends Question {
  readonly form: QuestionForm;
  readonly subject: string;
  /** What each relation of the path leads to; the last one is the answer. */
  readonly steps: readonly string[];
}

const slug = (text: string): string => text.replaceAll(' ', '-');

/** One passage a fact. */
function passageOfFact({ subject, relation, object }: Fact): PassageInput {
  return {
    id: `${slug(subject)}.${relation}`,
    title: subject,
    text: fill(RELATIONS[relation].sentence, subject, object),
  };
}

/** Passages of the facts of the given parts, in the order of the world. */
export function worldPassages(world: World, parts: readonly WorldPart[]): PassageInput[] {
  return world.facts.filter(({ part }) => parts.includes(part)).map(passageOfFact);
}

/**
 * The questions of a part that runs ask, in a shuffled order in which their forms take turns while they last. Their
 * ids are such that `partOf` puts them into the same part.
 */
export function worldQuestions(world: World, part: WorldPart): WorldQuestion[] {
  const shuffled = shuffledQuestions(world, part);
  const asked = QUESTION_FORMS.filter(({ asked }) => asked);
  return inTurns(asked.map((form) => shuffled.filter((question) => question.form === form)));
}

/** Questions of every form, to learn from; one and two steps take turns while both last. */
export function lessonQuestions(world: World): WorldQuestion[] {
  const shuffled = shuffledQuestions(world, 'training');
  return inTurns([1, 2].map((hops) => shuffled.filter(({ form }) => form.path.length === hops)));
}

function shuffledQuestions(world: World, part: WorldPart): WorldQuestion[] {
  const all = QUESTION_FORMS.flatMap((form) => {
    const kind = RELATIONS[form.path[0] as RelationName].subject;
    return world.names[part][kind].flatMap((subject) => questionOf(world, part, form, subject) ?? []);
  });
  const order = shuffledOrder(all.length, derivedSeed('tiny world questions', part));
  return order.map((index) => all[index] as WorldQuestion);
}

function inTurns(lists: readonly (readonly WorldQuestion[])[]): WorldQuestion[] {
  const rounds = Math.max(...lists.map(({ length }) => length));
  return Array.from({ length: rounds }, (_, i) => lists.flatMap((list) => list[i] ?? [])).flat();
}

/** null where the way leads back to where it began: the question would name its answer. */
function questionOf(
  world: World,
  part: WorldPart,
  form: QuestionForm,
  subject: string,
): WorldQuestion | null {
  const steps: string[] = [];
  for (const relation of form.path) steps.push(world.objectOf(steps.at(-1) ?? subject, relation) as string);
  const answer = steps.at(-1) as string;
  if (answer === subject) return null;
  return {
    id: idIn(part, `tiny.${form.path.join('-')}.${slug(subject)}`),
    dataset: form.path.length === 1 ? 'tiny-one-hop' : 'tiny-two-hop',
    question: fill(form.text, subject),
    goldenAnswers: [answer],
    supportingTitles: [subject, ...steps.slice(0, -1)],
    form,
    subject,
    steps,
  };
}

function idIn(part: WorldPart, name: string): string {
  const wanted = part === 'training' ? 'training' : 'validation';
  for (let count = 0; ; count++) {
    const id = count === 0 ? name : `${name}.${count}`;
    if (partOf(id) === wanted) return id;
  }
}
