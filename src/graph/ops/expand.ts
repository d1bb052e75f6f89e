import { broadcastOf, sameShape } from '../dimension.js';
import type { OpDefinition } from '../op.js';

/** x broadcast to the shape that a result of Shape holds. */
export const expand = {
  type: 'Expand',
  domain: '',
  arity: [2, 2],
  attributes: {},
  infer(call) {
    const x = call.input(0);
    const shape = call.shapeInput(1);
    const joint = broadcastOf(x.shape, shape);
    if (joint === null || !sameShape(joint, shape)) call.fail(`cannot be broadcast to [${shape}]`);
    return [{ type: x.type, shape }];
  },
  gradient: (call) => [() => call.dy, null],
} satisfies OpDefinition;
