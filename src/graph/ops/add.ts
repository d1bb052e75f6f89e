import { binary } from './elementwise.js';

/** c = a + b, broadcast. */
export const add = binary('Add', ({ dy }) => [() => dy, () => dy]);
