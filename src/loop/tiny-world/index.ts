export { type TinyEvaluation, type TinyFigures, tinyFigures } from './figures.js';
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
export { TINY_RECIPE, type TinyRecipe, type TinyStage } from './recipe.js';
export { type CurvePoint, runTiny, TINY_TRAINING, type TinyRunOptions, type TinyRunResult } from './run.js';
export { GOOD_HABITS, type Habits, WARM_START_HABITS } from './teacher.js';
export { tinyTrajectories } from './trajectories.js';
export { makeTinyWarmStart, type TinyWarmStartOptions } from './warm-start.js';
