import { binary } from './elementwise.js';

/** c = a * b, broadcast. */
export const mul = binary('Mul', (call) => [
  () => call.mul(call.dy, call.input(1)),
  () => call.mul(call.dy, call.input(0)),
]);
