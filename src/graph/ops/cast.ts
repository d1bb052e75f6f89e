import type { ElementType } from '../../runtime/index.js';
import type { OpDefinition } from '../op.js';

/** ONNX's codes of element types that `to` may name. */
const CAST_TO: Readonly<Partial<Record<ElementType, number>>> = { float32: 1, int32: 6, int64: 7 };

/** The same numbers as another element type. */
export const cast = {
  type: 'Cast',
  domain: '',
  arity: [1, 1],
  attributes: { to: 'int' },
  infer(call) {
    const found = Object.entries(CAST_TO).find(([, code]) => code === call.int('to'));
    const type = (found?.[0] ?? call.fail(`no element type has code ${call.int('to')}`)) as ElementType;
    return [{ type, shape: call.input(0).shape }];
  },
} satisfies OpDefinition;
