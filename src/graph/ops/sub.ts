import { binary } from './elementwise.js';

/** c = a - b, broadcast. */
export const sub = binary('Sub');
