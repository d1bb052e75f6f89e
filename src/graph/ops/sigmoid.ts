import { unary } from './elementwise.js';

/** y = 1 / (1 + e^-x). dx = dy y (1 - y). */
export const sigmoid = unary('Sigmoid', (call) => [
  () => {
    const y = call.result();
    return call.mul(call.dy, call.mul(y, call.op('Sub', [call.graph.scalar(1), y])));
  },
]);
