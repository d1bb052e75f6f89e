import { unary } from './elementwise.js';

/** y = e^x. dx = dy y. */
export const exp = unary('Exp', (call) => [() => call.mul(call.dy, call.result())]);
