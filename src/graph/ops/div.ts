import { binary } from './elementwise.js';

/** c = a / b, broadcast. da = dc / b; db = - dc c / b. */
export const div = binary('Div', (call) => [
  () => call.op('Div', [call.dy, call.input(1)]),
  () => call.op('Neg', [call.op('Div', [call.mul(call.dy, call.result()), call.input(1)])]),
]);
