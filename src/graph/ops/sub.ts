import { binary } from './elementwise.js';

/** c = a - b, broadcast. */
export const sub = binary('Sub', (call) => [() => call.dy, () => call.op('Neg', [call.dy])]);
