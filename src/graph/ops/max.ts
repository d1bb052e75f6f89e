import { binary } from './elementwise.js';

/** c = max(a, b), broadcast. */
export const max = binary('Max');
