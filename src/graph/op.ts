// What an operation is: its place in ONNX, its attributes, its shape and type rule, and a seat for its gradient.

import { GraphError } from '../errors.js';
import type { ElementType } from '../runtime/index.js';
import { type Shape, shapeText } from './dimension.js';
import type { GradientRule } from './gradient-call.js';
import type { AttributeValue, Value } from './value.js';

/** How an attribute is written in ONNX; `?` marks one that may be left out. */
export type AttributeKind = 'int' | 'float' | 'string' | 'ints' | 'int?' | 'float?' | 'string?' | 'ints?';

/** Element type and shape of one result. */
export interface ResultType {
  readonly type: ElementType;
  readonly shape: Shape;
}

export interface OpDefinition {
  /** ONNX's name of the operation. */
  readonly type: string;
  readonly domain: '' | 'com.microsoft';
  /** Fewest and most inputs. */
  readonly arity: readonly [number, number];
  readonly attributes: Readonly<Record<string, AttributeKind>>;
  /** Result types from the inputs, or a {@link GraphError} by `call.fail`. */
  infer(call: OpCall): readonly ResultType[];
  /** Gradients of the inputs from those of the results; an operation without a rule cannot be differentiated. */
  readonly gradient?: GradientRule;
}

/** What a rule may ask about constants and values beyond their types. */
export interface Lookup {
  /** Numbers of an int64 constant inside the graph; null for anything else. */
  integersOf(name: string): readonly number[] | null;
  /** The shape that a result of Shape stands for; null for anything else. */
  shapeBehind(name: string): Shape | null;
}

/** One use of an operation, as its rule sees it. */
export class OpCall {
  constructor(
    readonly op: string,
    readonly name: string,
    private readonly inputs: readonly (Value | null)[],
    readonly attributes: Readonly<Record<string, AttributeValue>>,
    private readonly lookup: Lookup,
  ) {}

  /** Number of inputs. */
  get count(): number {
    return this.inputs.length;
  }

  /** @throws {GraphError} the input is missing or has another element type */
  input(index: number, ...types: readonly ElementType[]): Value {
    const value = this.optional(index, ...types);
    return value ?? this.fail(`input ${index} is missing`);
  }

  optional(index: number, ...types: readonly ElementType[]): Value | null {
    const value = this.inputs[index] ?? null;
    if (value !== null && types.length > 0 && !types.includes(value.type))
      this.fail(`input ${index} must be ${types.join(' or ')}, not ${value.type}`);
    return value;
  }

  /** The integers of a constant input. */
  constantIntegers(index: number): readonly number[] {
    return (
      this.lookup.integersOf(this.input(index, 'int64').name) ??
      this.fail(`input ${index} must be a constant`)
    );
  }

  /** The shape that an input made by Shape holds. */
  shapeInput(index: number): Shape {
    return (
      this.lookup.shapeBehind(this.input(index, 'int64').name) ??
      this.fail(`input ${index} must be the result of Shape`)
    );
  }

  int(name: string, fallback?: number): number {
    const value = this.attributes[name] ?? fallback;
    return typeof value === 'number' ? value : this.fail(`attribute ${name} is missing`);
  }

  /** An axis counted from the front, for a tensor of `rank` axes. */
  axis(axis: number, rank: number): number {
    const result = axis < 0 ? axis + rank : axis;
    return result >= 0 && result < rank ? result : this.fail(`axis ${axis} is outside rank ${rank}`);
  }

  expectShape(index: number, shape: Shape): void {
    const value = this.input(index);
    if (value.shape.length !== shape.length || !value.shape.every((item, axis) => item === shape[axis]))
      this.fail(`input ${index} must be ${shapeText(shape)}`);
  }

  /** @throws {GraphError} names operation, node, reason, and every input with its shape */
  fail(reason: string): never {
    const inputs = this.inputs
      .map((value) => (value === null ? '-' : `${value.name} ${value.type}${shapeText(value.shape)}`))
      .join(', ');
    throw new GraphError(`${this.op} "${this.name}": ${reason}; inputs: ${inputs}`);
  }
}
