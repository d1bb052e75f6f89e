// What can be said of the things of the world, and what can be asked of them.

export type EntityKind = 'person' | 'town' | 'river';

export type RelationName = 'birthplace' | 'teacher' | 'spouse' | 'founder' | 'river';

export interface Relation {
  readonly subject: EntityKind;
  readonly object: EntityKind;
  /** A passage's whole text, with the holes {s} and {o}. */
  readonly sentence: string;
  /** What is searched for beside the subject's name. */
  readonly keyword: string;
}

export const RELATIONS: Readonly<Record<RelationName, Relation>> = {
  birthplace: { subject: 'person', object: 'town', sentence: '{s} was born in {o} .', keyword: 'born' },
  teacher: { subject: 'person', object: 'person', sentence: '{s} was taught by {o} .', keyword: 'taught' },
  spouse: { subject: 'person', object: 'person', sentence: '{s} was married to {o} .', keyword: 'married' },
  founder: { subject: 'town', object: 'person', sentence: '{s} was founded by {o} .', keyword: 'founded' },
  river: { subject: 'town', object: 'river', sentence: '{s} lies on river {o} .', keyword: 'river' },
};

/** Relations to follow one after the other, and the question that asks for what stands at their end. */
export interface QuestionForm {
  readonly path: readonly RelationName[];
  readonly text: string;
  /**
   * Whether runs ask it. Every form is a lesson of the warm start, but what it learns in its short time is to tell
   * where somebody was born and who founded a town; a person's teacher or spouse it finds but tells wrong in its
   * answer. A run is to show that a policy learns to search, so it asks what can be answered by whoever searches.
   */
  readonly asked: boolean;
}

export const QUESTION_FORMS: readonly QuestionForm[] = [
  { path: ['birthplace'], text: 'where was {s} born ?', asked: true },
  { path: ['teacher'], text: 'who taught {s} ?', asked: false },
  { path: ['spouse'], text: 'who married {s} ?', asked: false },
  { path: ['founder'], text: 'who founded {s} ?', asked: true },
  { path: ['river'], text: 'on which river lies {s} ?', asked: false },
  { path: ['birthplace', 'river'], text: 'on which river lies the birthplace of {s} ?', asked: false },
  { path: ['birthplace', 'founder'], text: 'who founded the birthplace of {s} ?', asked: true },
  { path: ['teacher', 'birthplace'], text: 'where was the teacher of {s} born ?', asked: true },
  { path: ['teacher', 'spouse'], text: 'who married the teacher of {s} ?', asked: false },
  { path: ['spouse', 'birthplace'], text: 'where was the spouse of {s} born ?', asked: true },
  { path: ['spouse', 'teacher'], text: 'who taught the spouse of {s} ?', asked: false },
  { path: ['founder', 'birthplace'], text: 'where was the founder of {s} born ?', asked: false },
  { path: ['founder', 'teacher'], text: 'who taught the founder of {s} ?', asked: false },
];

export const fill = (text: string, subject: string, object = ''): string =>
  text.replace('{s}', subject).replace('{o}', object);
