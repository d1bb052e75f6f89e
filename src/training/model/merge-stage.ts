// W + s B A, so that the forward run costs what the base alone costs.

import { mergedWeight } from '../../model/index.js';
import type { TensorView } from '../../runtime/index.js';
import { type LoraModule, viewOf } from './parameters.js';
import { type StageOptions, StageSession } from './stage-session.js';

export class MergeStage {
  private constructor(private readonly session: StageSession) {}

  static async open(options: StageOptions): Promise<MergeStage> {
    return new MergeStage(await StageSession.open(mergedWeight(), options));
  }

  /** Writes base + scale B A to `target`. */
  async merge(key: string, { a, b, scale }: LoraModule, base: TensorView, target: TensorView): Promise<void> {
    const inputs = {
      base,
      a: viewOf(a, a.values),
      b: viewOf(b, b.values),
      scale: { type: 'float32', shape: [], data: Float32Array.of(scale) } as TensorView,
    };
    await this.session.run(key, inputs, { merged: target });
  }

  close(): void {
    this.session.close();
  }
}
