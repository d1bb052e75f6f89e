import { reduction, spread } from './reduce.js';

/** Sum over the axes. */
export const reduceSum = reduction('ReduceSum', spread);
