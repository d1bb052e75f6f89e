import { unary } from './elementwise.js';

/** y = 1 / (1 + exp(-x)). */
export const sigmoid = unary('Sigmoid');
