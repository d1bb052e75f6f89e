import { reduction, spread } from './reduce.js';

/** Mean over the axes. Its gradient needs their sizes to be numbers. */
export const reduceMean = reduction('ReduceMean', (call) => [
  () => {
    const { shape } = call.input(0);
    const count = call.graph.integersOf(call.input(1)).reduce((product, axis) => {
      const size = shape.at(axis);
      return typeof size === 'number' ? product * size : call.fail(`axis ${axis} is open`);
    }, 1);
    return call.mul(spread(call)[0]!(), call.graph.scalar(1 / count));
  },
  null,
]);
