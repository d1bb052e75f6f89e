import { sameShape } from '../dimension.js';
import type { OpDefinition } from '../op.js';

/** y[..., j] = data[..., indices[..., j]] along the last axis: int64 indices [..., J]. */
export const gatherElements = {
  type: 'GatherElements',
  domain: '',
  arity: [2, 2],
  attributes: { axis: 'int' },
  infer(call) {
    const data = call.input(0, 'float32');
    const indices = call.input(1, 'int64');
    if (call.axis(call.int('axis'), data.shape.length) !== data.shape.length - 1)
      call.fail('only the last axis');
    if (!sameShape(data.shape.slice(0, -1), indices.shape.slice(0, -1))) call.fail('leading axes differ');
    return [{ type: 'float32', shape: indices.shape }];
  },
  // One index a row: dy where the index points, else zero.
  gradient: (call) => [
    () => {
      const [data, indices] = [call.input(0), call.input(1)];
      if (indices.shape.at(-1) !== 1 || indices.shape.length !== 2) call.fail('only for indices [N, 1]');
      const depth = call.graph.integers([Number(data.shape.at(-1))], []);
      const ends = call.graph.pair(0, 1);
      const flat = call.op('Reshape', [indices, call.graph.integers([-1])]);
      return call.mul(call.op('OneHot', [flat, depth, ends], { axis: -1 }), call.dy);
    },
    null,
  ],
} satisfies OpDefinition;
