// evaluation/: how well a policy answers: questions, their split, measures with their uncertainty, reports.
// Questions and rollouts in; results, comparisons and tables out.
// Never trains, never chooses what goes live.

export { type Question, readQuestions } from './questions.js';
export { isValidation, PARTS, type Part, partOf, selectPart } from './split.js';
