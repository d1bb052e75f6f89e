import { lessonQuestions, worldPassages, worldQuestions } from '../../../bench/tiny-world/questions.js';
import { QUESTION_FORMS, RELATIONS } from '../../../bench/tiny-world/relations.js';
import { createWorld, otherWorld, WORLD_SETTINGS } from '../../../bench/tiny-world/world.js';
import { isValidation, partOf } from '../../../src/evaluation/index.js';

const world = createWorld();
const training = worldQuestions(world, 'training');
const heldOut = worldQuestions(world, 'held-out');

test('the same settings give the same world, another seed another one', () => {
  expect(createWorld()).toMatchObject({ facts: world.facts, names: world.names });
  const other = createWorld({ ...WORLD_SETTINGS, seed: 2 });
  expect(other.facts[0]?.subject).not.toBe(world.facts[0]?.subject);
});

test('no fact joins the halves, and no name is in both', () => {
  const { names, facts } = world;
  for (const kind of ['person', 'town', 'river'] as const) {
    const own = new Set(names.training[kind]);
    expect(own.size).toBe(WORLD_SETTINGS.counts.training[kind]);
    expect(names['held-out'][kind].filter((name) => own.has(name))).toEqual([]);
  }
  for (const { part, relation, subject, object } of facts) {
    expect(names[part][RELATIONS[relation].subject]).toContain(subject);
    expect(names[part][RELATIONS[relation].object]).toContain(object);
  }
});

test('nothing that training can see tells a fact behind a held-out question', () => {
  const texts = [
    ...worldPassages(world, ['training']).map(({ text }) => text),
    ...training.map(({ question }) => question),
    ...lessonQuestions(world).map(({ question }) => question),
  ];
  const seen = texts.join('\n');
  for (const { subject, steps } of heldOut)
    for (const name of [subject, ...steps]) expect(seen.includes(name)).toBe(false);
});

test('other worlds are made of the same words, and hold nothing that is held out', () => {
  const other = otherWorld(world, 7);
  expect(other.nameWords).toBe(world.nameWords);
  expect(otherWorld(world, 8).facts[0]).not.toEqual(other.facts[0]);
  const kept = new Set(Object.values(world.names['held-out']).flat());
  for (const { subject, object, part } of other.facts) {
    expect(part).toBe('training');
    expect(kept.has(subject) || kept.has(object)).toBe(false);
  }
});

test('every held-out answer stands at the end of its path in the passages', () => {
  const passages = new Map(
    worldPassages(world, ['training', 'held-out']).map((passage) => [passage.id, passage]),
  );
  expect(passages.size).toBe(world.facts.length);
  for (const { form, subject, steps, goldenAnswers, question } of heldOut) {
    let at = subject;
    for (const [i, relation] of form.path.entries()) {
      const passage = passages.get(`${at.replace(' ', '-')}.${relation}`);
      expect(passage?.text).toContain(`${steps[i]} .`);
      at = steps[i] as string;
    }
    expect(goldenAnswers).toEqual([at]);
    expect(question).toContain(subject);
    expect(question).not.toContain(at);
  }
});

test('ids follow the split of the house; the forms that are asked take turns', () => {
  expect(new Set([...training, ...heldOut].map(({ id }) => id)).size).toBe(training.length + heldOut.length);
  expect(heldOut.every(({ id }) => isValidation(id))).toBe(true);
  expect(training.every(({ id }) => partOf(id) === 'training')).toBe(true);
  expect(heldOut.length).toBeGreaterThan(400);
  const asked = QUESTION_FORMS.filter((form) => form.asked);
  const first = heldOut.slice(0, asked.length * 20).map(({ form }) => form);
  for (const form of asked) expect(first.filter((other) => other === form)).toHaveLength(20);
  const sets = heldOut.slice(0, 100).map(({ dataset }) => dataset);
  expect(sets.filter((set) => set === 'tiny-one-hop')).toHaveLength(40);
  // Lessons are about every form.
  expect(new Set(lessonQuestions(world).map(({ form }) => form))).toEqual(new Set(QUESTION_FORMS));
});
