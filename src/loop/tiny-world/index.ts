export {
  openTinyHouse,
  openTinyPlace,
  TINY_MODEL_ID,
  TINY_SETTINGS,
  type TinyHouse,
  type TinyIndex,
  type TinyPlace,
  tinyModelFolder,
} from './house.js';
export {
  type CurvePoint,
  runTiny,
  TINY_TRAINING,
  type TinyEvaluation,
  type TinyFigures,
  type TinyRunOptions,
  type TinyRunResult,
  tinyFigures,
} from './run.js';
export { GOOD_HABITS, type Habits, WARM_START_HABITS } from './teacher.js';
export {
  makeTinyWarmStart,
  TINY_RECIPE,
  type TinyRecipe,
  type TinyWarmStartOptions,
  tinyTrajectories,
} from './warm-start.js';
