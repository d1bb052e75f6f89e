// evaluation/: how well a policy answers: questions, their split, measures with their uncertainty, reports.
// Questions and rollouts in; results, comparisons and tables out.
// Never trains, never chooses what goes live.

export { type Interval, meanInterval, type PairedDifference, pairedDifference } from './bootstrap.js';
export { compareResults, markdownComparison } from './compare.js';
export { evaluate } from './evaluate.js';
export { readResults, readTranscripts, settingsDigest } from './folder.js';
export { type Question, questionDigest, readQuestions } from './questions.js';
export { type EvaluationReport, markdownReport, reportOf } from './report.js';
export type { QuestionResult } from './result.js';
export { sampleOrder } from './sample-order.js';
export { isYesNo, shownPart } from './shown.js';
export { chiSquareTail } from './special-functions.js';
export { isValidation, PARTS, type Part, partOf, selectPart } from './split.js';
export { chosenTranscripts, markdownTranscripts, partsOf, readableParts } from './transcript.js';
