// evaluation/: how well a policy answers: questions, their split, measures with their uncertainty, reports.
// Questions and rollouts in; results, comparisons and tables out.
// Never trains, never chooses what goes live.

export { type AnsweredQuestion, type AnswerOptions, answerQuestion } from './answer-question.js';
export {
  DEFAULT_RESAMPLING,
  type Interval,
  meanInterval,
  type PairedDifference,
  pairedDifference,
  type ResamplingOptions,
} from './bootstrap.js';
export { type Comparison, compareResults, markdownComparison, type SetComparison } from './compare.js';
export { type EvaluationOptions, evaluate } from './evaluate.js';
export { readResults, readSettings, readTranscripts, settingsDigest } from './folder.js';
export { type McNemar, mcnemar } from './mcnemar.js';
export { fitLogLogLine, fitPowerLaw, type LogLogLine, type PowerLaw } from './power-law.js';
export { type Question, questionDigest, readQuestions } from './questions.js';
export { expectedMajAtK, type GradedAnswer, passAtK } from './repeated.js';
export { type EvaluationReport, markdownReport, reportOf, type SetReport } from './report.js';
export type { QuestionResult } from './result.js';
export { sampleOrder } from './sample-order.js';
export type { AtK, SampledSet } from './sampled-report.js';
export { holdsAnswer, isYesNo, shownPart } from './shown.js';
export { chiSquareTail } from './special-functions.js';
export { isValidation, PARTS, type Part, partOf, selectPart } from './split.js';
export {
  chosenTranscripts,
  markdownTranscripts,
  partsOf,
  readableParts,
  type StoredTranscript,
  type Transcript,
} from './transcript.js';
