// W + s B A, so that the forward run costs what the base alone costs.

import { type BaseForm, mergedWeight } from '../../model/index.js';
import type { TensorView } from '../../runtime/index.js';
import type { QuantisedMatrix } from '../../weights/index.js';
import { type LoraModule, viewOf } from './parameters.js';
import { type StageOptions, StageSession, type Views } from './stage-session.js';

/** A linear layer without adapter, as the merge reads it. */
export interface Base {
  readonly form: BaseForm;
  readonly inputs: Views;
}

export function floatBase(view: TensorView): Base {
  return { form: 'float32', inputs: { base: view } };
}

/** @throws {RangeError} no symmetric 8-bit blocks */
export function quantisedBase({ bits, values, scales, zeroPoints }: QuantisedMatrix): Base {
  if (bits !== 8 || zeroPoints !== null)
    throw new RangeError('only symmetric 8-bit blocks are merged as they are');
  // 128 in the middle becomes 0: the same bits but for the first.
  const signed = new Int8Array(values.buffer, values.byteOffset, values.length).map((value) => value ^ -128);
  const blocks = scales.length;
  return {
    form: '8 bits',
    inputs: {
      values: { type: 'int8', shape: [blocks, values.length / blocks], data: signed },
      scales: { type: 'float32', shape: [blocks], data: scales },
    },
  };
}

export class MergeStage {
  /** By form and shape. */
  readonly #sessions = new Map<string, StageSession>();

  constructor(private readonly options: StageOptions) {}

  /** Writes base + scale B A to `target`. */
  async merge(key: string, { a, b, scale }: LoraModule, base: Base, target: TensorView): Promise<void> {
    const session = await this.#session(base.form, [b.shape[0]!, a.shape[1]!]);
    const inputs = {
      ...base.inputs,
      a: viewOf(a, a.values),
      b: viewOf(b, b.values),
      scale: { type: 'float32', shape: [], data: Float32Array.of(scale) } as TensorView,
    };
    await session.run(key, inputs, { merged: target });
  }

  async #session(form: BaseForm, shape: readonly [number, number]): Promise<StageSession> {
    const key = `${form} ${shape}`;
    const session =
      this.#sessions.get(key) ?? (await StageSession.open(mergedWeight(form, shape), this.options));
    this.#sessions.set(key, session);
    return session;
  }

  close(): void {
    for (const session of this.#sessions.values()) session.close();
  }
}
