import { type Dimension, sameShape } from '../dimension.js';
import type { OpDefinition } from '../op.js';

/** Tensors one after the other along `axis`, whose sizes are numbers. */
export const concat = {
  type: 'Concat',
  domain: '',
  arity: [1, 64],
  attributes: { axis: 'int' },
  infer(call) {
    const first = call.input(0);
    const axis = call.axis(call.int('axis'), first.shape.length);
    let total = 0;
    for (let index = 0; index < call.count; index++) {
      const part = call.input(index, first.type);
      const size: Dimension = part.shape[axis] ?? call.fail(`input ${index} has no axis ${axis}`);
      if (typeof size !== 'number') call.fail(`axis ${axis} of input ${index} is open`);
      if (!sameShape(part.shape.with(axis, 0), first.shape.with(axis, 0)))
        call.fail(`input ${index} differs beside axis ${axis}`);
      total += Number(size);
    }
    return [{ type: first.type, shape: first.shape.with(axis, total) }];
  },
  gradient(call) {
    const inputs = Array.from({ length: call.count }, (_, index) => call.input(index));
    const axis = Number(call.attributes['axis']);
    const sizes = inputs.map((part) => Number(part.shape.at(axis)));
    let parts: readonly ReturnType<typeof call.op>[] | undefined;
    const cut = () => (parts ??= call.ops('Split', [call.dy, call.graph.integers(sizes)], { axis }));
    return inputs.map((_, index) => () => cut()[index]!);
  },
} satisfies OpDefinition;
