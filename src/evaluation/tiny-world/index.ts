export { buildWorldIndexes, emptyRetriever, WORLD_INDEXES, wordRetriever } from './indexes.js';
export {
  TINY_MODEL_SHAPE,
  type TinyModelShape,
  writeRandomModel,
  writeTinyModelFiles,
} from './model.js';
export { lessonQuestions, type WorldQuestion, worldPassages, worldQuestions } from './questions.js';
export {
  type EntityKind,
  QUESTION_FORMS,
  type QuestionForm,
  RELATIONS,
  type RelationName,
} from './relations.js';
export { END_TOKEN, TINY_WORLD_PROMPT } from './tokenizer.js';
export { answerTurn, GIVE_UP, type KnownFact, searchTurn } from './turns.js';
export {
  createWorld,
  type Fact,
  otherWorld,
  WORLD_SETTINGS,
  type World,
  type WorldPart,
  type WorldSettings,
} from './world.js';
