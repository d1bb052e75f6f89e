import { binary } from './elementwise.js';

/** c = a / b, broadcast. */
export const div = binary('Div');
