// What training graphs are made of: layers whose weights are inputs, and the gradients of what is trained.

import { type GraphBuilder, gradients, type Value } from '../graph/index.js';
import type { DecoderConfig } from './decoder-config.js';
import { type LinearModule, linearShape } from './decoder-weights.js';

/** What of a stage is trained. */
export type Trained =
  | {
      readonly kind: 'lora';
      /** Rank of each module that has an adapter. */
      readonly ranks: Readonly<Partial<Record<LinearModule, number>>>;
    }
  | { readonly kind: 'all' };

/** A linear layer's input and product, for the gradients of its adapter. */
interface LinearUse {
  readonly module: LinearModule;
  readonly x: Value;
  /** Without the bias. */
  readonly y: Value;
}

/** One stage's graph: forward nodes first, then {@link StageBuilder.differentiate}. */
export class StageBuilder {
  readonly #linears: LinearUse[] = [];
  /** Inputs that are trained themselves where all weights are. */
  readonly #weights: Value[] = [];
  readonly #always: Value[] = [];
  readonly #seeds = new Map<Value, Value>();
  readonly #resultNames = new Map<Value, string>();
  readonly #late: Value[] = [];

  constructor(
    readonly graph: GraphBuilder,
    readonly config: DecoderConfig,
    private readonly trained: Trained,
  ) {}

  /** A float32 input that may be trained. */
  weight(name: string, shape: readonly (number | string)[]): Value {
    const value = this.graph.input(name, 'float32', shape);
    this.#weights.push(value);
    return value;
  }

  /** A float32 input that is always trained. */
  headWeight(name: string, shape: readonly (number | string)[]): Value {
    const value = this.graph.input(name, 'float32', shape);
    this.#always.push(value);
    return value;
  }

  /** x W^T, for x [T, in] and input `<module>.weight` [out, in], which holds the adapter's product as well. */
  linear(module: LinearModule, x: Value): Value {
    const weight = this.weight(`${module}.weight`, linearShape(this.config, module));
    const y = this.graph.op('FusedMatMul', [x, weight], {
      name: `${module}.linear`,
      attributes: { transB: 1 },
    });
    this.#linears.push({ module, x, y });
    return y;
  }

  /** RMS norm with input `<name>.scale`. */
  norm(name: string, x: Value): Value {
    const scale = this.weight(`${name}.scale`, [Number(x.shape.at(-1))]);
    return this.graph.op('SimplifiedLayerNormalization', [x, scale], {
      name,
      attributes: { axis: -1, epsilon: this.config.normEpsilon, stash_type: 1 },
    });
  }

  /** An input that is known only after the results. */
  late(name: string, shape: readonly (number | string)[]): Value {
    const value = this.graph.input(name, 'float32', shape);
    this.#late.push(value);
    return value;
  }

  /** Makes a value an output of the stage with input `<name>.grad` for its gradient. */
  result(name: string, value: Value): void {
    this.graph.output(name, value);
    this.#resultNames.set(value, name);
    this.#seeds.set(value, this.late(`${name}.grad`, value.shape));
  }

  /** Adds the gradients of what is trained, as outputs, and returns those of `targets`. */
  differentiate(targets: readonly Value[]): Map<Value, Value> {
    const adapted = this.#linears.filter(({ module }) => this.#rank(module) > 0);
    const weights = this.trained.kind === 'all' ? [...this.#weights, ...this.#always] : this.#always;
    const outputs = adapted.map(({ y }) => y);
    const found = gradients(this.graph, this.#seeds, [...targets, ...weights, ...outputs]);
    for (const weight of weights) this.addTo(weight.name, found.get(weight)!);
    for (const use of adapted) this.#adapterGradients(use, found.get(use.y)!);
    return found;
  }

  /** Name of the output that a value was made by `result`. */
  resultName(value: Value): string | undefined {
    return this.#resultNames.get(value);
  }

  get lateInputs(): readonly Value[] {
    return this.#late;
  }

  #rank(module: LinearModule): number {
    return this.trained.kind === 'lora' ? (this.trained.ranks[module] ?? 0) : 0;
  }

  /**
   * y = x (W + s B A)^T:  dA = s (dy B)^T x,  dB = s dy^T (x A^T).
   * @see Hu et al. 2021, arXiv:2106.09685, section 4.1
   */
  #adapterGradients({ module, x }: LinearUse, dy: Value): void {
    const { graph } = this;
    const [out, inner] = linearShape(this.config, module);
    const rank = this.#rank(module);
    const a = this.late(`${module}.a`, [rank, inner]);
    const b = this.late(`${module}.b`, [out, rank]);
    const scale = this.late(`${module}.loraScale`, []);
    const product = (name: string, left: Value, right: Value, attributes: Record<string, number>): Value =>
      graph.op('FusedMatMul', [left, right], { name: `${module}.${name}`, attributes });
    const scaled = (value: Value): Value => graph.op('Mul', [value, scale], { name: `${value.name}.scaled` });
    const inward = scaled(product('lora.inner', x, a, { transB: 1 }));
    const outward = scaled(product('lora.outer', dy, b, {}));
    const aSum = this.late(`${module}.a.sum`, [rank, inner]);
    const added = { name: `${module}.a.added`, attributes: { transA: 1 } };
    graph.output(`${module}.a.grad`, graph.op('Gemm', [outward, x, aSum], added));
    // dB turned round: a product with few rows reads dy as it lies.
    const turned = product('b.turned', inward, dy, { transA: 1 });
    this.addTo(
      `${module}.b`,
      graph.op('Transpose', [turned], { name: `${module}.b.part`, attributes: { perm: [1, 0] } }),
    );
  }

  /** Output `<name>.grad` = input `<name>.sum` + gradient; both may be the same memory. */
  addTo(name: string, gradient: Value): void {
    const sum = this.late(`${name}.sum`, gradient.shape);
    this.graph.output(`${name}.grad`, this.graph.op('Add', [sum, gradient], { name: `${name}.added` }));
  }
}
