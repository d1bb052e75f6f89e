// The output layer over the rows of hidden states that targets are drawn from, a bounded number at a time.

import type { TensorView } from '../../runtime/index.js';
import type { ScoreGradients, Scores } from '../training-model.js';
import type { PackedBatch } from './packing.js';
import type { Views } from './stage-session.js';
import type { Stage } from './stages.js';
import { floats, type Workspace } from './workspace.js';

/** Rows of logits that are in memory at once. */
const ROWS = 256;

export interface HeadWeights {
  readonly inputs: Views;
  readonly gradientInputs: Views;
  readonly gradientOutputs: Views;
}

type ScoreName = keyof Scores;

export class HeadRunner {
  constructor(
    private readonly stage: Stage,
    private readonly weights: HeadWeights,
    private readonly workspace: Workspace,
    private readonly kind: 'policy' | 'value',
  ) {}

  /** @param hidden f32 [T, D], before the last norm */
  async forward(batch: PackedBatch, hidden: TensorView): Promise<Scores> {
    const count = batch.rows.length;
    const scores = Object.fromEntries(
      (['logprobs', 'entropies', 'values'] as const).map((name) => [
        name,
        new Float32Array(this.#names.includes(name) ? count : 0),
      ]),
    ) as unknown as Record<ScoreName, Float32Array>;
    for (let first = 0; first < count; first += ROWS) {
      const rows = Math.min(ROWS, count - first);
      const outputs = this.#columns('', rows);
      await this.stage.run('score', 'rows', this.#inputs(batch, hidden, first, rows), outputs);
      for (const name of this.#names) scores[name].set(floats(outputs[name]!), first);
    }
    return scores;
  }

  /** Adds the head's own gradients; writes d hidden [T, D]. */
  async backward(
    batch: PackedBatch,
    hidden: TensorView,
    gradients: ScoreGradients,
    dHidden: TensorView,
  ): Promise<void> {
    const width = hidden.shape[1]!;
    floats(dHidden).fill(0);
    for (let first = 0; first < batch.rows.length; first += ROWS) {
      const rows = Math.min(ROWS, batch.rows.length - first);
      const seeds = this.#columns('.grad', rows);
      for (const name of this.#names) {
        const given = gradients[name];
        const seed = floats(seeds[`${name}.grad`]!);
        if (given === undefined) seed.fill(0);
        else seed.set(given.subarray(first, first + rows));
      }
      const part = this.workspace.tensor('head.hidden.grad', [rows, width]);
      await this.stage.run(
        'backward',
        'rows',
        { ...this.#inputs(batch, hidden, first, rows), ...this.weights.gradientInputs, ...seeds },
        { ...this.weights.gradientOutputs, 'hidden.grad': part },
      );
      for (let row = 0; row < rows; row++)
        floats(dHidden).set(
          floats(part).subarray(row * width, (row + 1) * width),
          batch.rows[first + row]! * width,
        );
    }
  }

  get #names(): readonly ScoreName[] {
    return this.kind === 'policy' ? ['logprobs', 'entropies'] : ['values'];
  }

  #columns(suffix: string, rows: number): Views {
    return Object.fromEntries(
      this.#names.map((name) => [
        `${name}${suffix}`,
        this.workspace.tensor(`head.${name}${suffix}`, [rows, 1]),
      ]),
    );
  }

  #inputs(batch: PackedBatch, hidden: TensorView, first: number, rows: number): Views {
    const width = hidden.shape[1]!;
    const picked = this.workspace.tensor('head.hidden', [rows, width]);
    for (let row = 0; row < rows; row++) {
      const source = batch.rows[first + row]! * width;
      floats(picked).set(floats(hidden).subarray(source, source + width), row * width);
    }
    const targets: TensorView = {
      type: 'int64',
      shape: [rows, 1],
      data: batch.targetIds.subarray(first, first + rows),
    };
    return { hidden: picked, targets, ...this.weights.inputs };
  }
}
