import { reduction } from './reduce.js';

/** log(sum(exp(x))) over the axes, without overflow. */
export const reduceLogSumExp = reduction('ReduceLogSumExp');
