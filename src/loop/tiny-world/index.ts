export { GOOD_HABITS, type Habits, WARM_START_HABITS } from './teacher.js';
export {
  makeTinyWarmStart,
  TINY_RECIPE,
  TINY_ROLLOUT,
  type TinyRecipe,
  type TinyWarmStartOptions,
  tinyTrajectories,
} from './warm-start.js';
