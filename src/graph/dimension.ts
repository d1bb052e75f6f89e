// Dimensions are numbers or symbols. A symbol is a product of names ("B*S", "2*S"), kept in one canonical form, so that
// equal dimensions are equal strings.

export type Dimension = number | string;
export type Shape = readonly Dimension[];

interface Monomial {
  readonly coefficient: number;
  /** Sorted; a name may occur more than once. */
  readonly names: readonly string[];
}

function parse(dimension: Dimension): Monomial {
  if (typeof dimension === 'number') return { coefficient: dimension, names: [] };
  let coefficient = 1;
  const names: string[] = [];
  for (const factor of dimension.split('*'))
    if (/^\d+$/.test(factor)) coefficient *= Number(factor);
    else names.push(factor);
  return { coefficient, names: names.sort() };
}

function format({ coefficient, names }: Monomial): Dimension {
  if (coefficient === 0 || names.length === 0) return coefficient;
  return coefficient === 1 ? names.join('*') : [coefficient, ...names].join('*');
}

/** Product of dimensions; 1 for none. */
export function productOf(dimensions: readonly Dimension[]): Dimension {
  let coefficient = 1;
  const names: string[] = [];
  for (const dimension of dimensions) {
    const part = parse(dimension);
    coefficient *= part.coefficient;
    names.push(...part.names);
  }
  return format({ coefficient, names: names.sort() });
}

/** `total / part` where it comes out even, else null. */
export function quotientOf(total: Dimension, part: Dimension): Dimension | null {
  const [a, b] = [parse(total), parse(part)];
  if (b.coefficient === 0 || a.coefficient % b.coefficient !== 0) return null;
  const names = [...a.names];
  for (const name of b.names) {
    const at = names.indexOf(name);
    if (at < 0) return null;
    names.splice(at, 1);
  }
  return format({ coefficient: a.coefficient / b.coefficient, names });
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}

/** Shape of an element-wise result under ONNX's broadcast rule, or null where the shapes do not fit. */
export function broadcastOf(a: Shape, b: Shape): Shape | null {
  const rank = Math.max(a.length, b.length);
  const result: Dimension[] = [];
  for (let axis = 0; axis < rank; axis++) {
    const left = a[axis - rank + a.length] ?? 1;
    const right = b[axis - rank + b.length] ?? 1;
    if (left === right || right === 1) result.push(left);
    else if (left === 1) result.push(right);
    else return null;
  }
  return result;
}

/** `[2,S,64]`, for messages. */
export function shapeText(shape: Shape): string {
  return `[${shape.join(',')}]`;
}
