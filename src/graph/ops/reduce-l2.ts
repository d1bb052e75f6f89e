import { reduction } from './reduce.js';

/** Euclidean length over the axes. */
export const reduceL2 = reduction('ReduceL2');
