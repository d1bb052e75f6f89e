import { unary } from './elementwise.js';

/** y = -x. */
export const neg = unary('Neg', (call) => [() => call.op('Neg', [call.dy])]);
