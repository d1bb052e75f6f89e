// Shape rules of operations that work element by element.

import { broadcastOf } from '../dimension.js';
import type { GradientRule } from '../gradient-call.js';
import type { OpCall, OpDefinition, ResultType } from '../op.js';

function broadcast(call: OpCall): readonly ResultType[] {
  const a = call.input(0, 'float32', 'int64', 'int32');
  const b = call.input(1, a.type);
  const shape = broadcastOf(a.shape, b.shape) ?? call.fail('the shapes do not broadcast');
  return [{ type: a.type, shape }];
}

/** An operation on two tensors of one type, broadcast against each other. */
export function binary<Type extends string>(type: Type, gradient?: GradientRule) {
  return {
    type,
    domain: '',
    arity: [2, 2],
    attributes: {},
    infer: broadcast,
    ...(gradient && { gradient }),
  } satisfies OpDefinition;
}

/** An operation on each element of a float32 tensor. */
export function unary<Type extends string>(
  type: Type,
  gradient?: GradientRule,
  domain: OpDefinition['domain'] = '',
) {
  return {
    type,
    domain,
    arity: [1, 1],
    attributes: {},
    infer: (call) => [{ type: 'float32', shape: call.input(0, 'float32').shape }],
    ...(gradient && { gradient }),
  } satisfies OpDefinition;
}
