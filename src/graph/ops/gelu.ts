import { unary } from './elementwise.js';

/** y = x / 2 * (1 + erf(x / sqrt 2)), the exact form. */
export const gelu = unary('Gelu', 'com.microsoft');
